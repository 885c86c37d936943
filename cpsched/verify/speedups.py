"""The sizes of moldable jobs: on how many chunks a job can run, and how long it takes there, in exact numbers."""

import re
from collections.abc import Mapping
from fractions import Fraction
from math import ceil

from cpsched.verify.documents import MAX_DURATION, MAX_SIZE, Cursor

SIZE = re.compile(r"[1-9][0-9]{0,6}")
#: The most other sizes of a job.
MAX_SIZES = 64
#: The largest figure of a model.
MAX_FIGURE = 10**9
FIGURES = {"none": (), "amdahl": ("serial",), "downey": ("parallelism", "sigma"), "table": ("speedups",)}


def read_sizes(cursor: Cursor, own: int, walltime: int) -> dict[int, int]:
    """Read how long a moldable job takes (s) on each other number of chunks, ascending.

    `own`, `walltime`: the chunks that it asks for itself, and its seconds on these.
    """
    figures = ("serial", "parallelism", "sigma", "speedups")
    members = cursor.members(["model"], ["sizes", "min", "max", *figures])
    model = members["model"].choice(tuple(FIGURES))
    if {name for name in figures if name in members} != {*FIGURES[model]}:
        cursor.refuse(f"expected the figures {FIGURES[model]} with the model {model}, and no others")
    if "sizes" in members:
        if "min" in members or "max" in members:
            cursor.refuse("expected either sizes, or min and max")
        sizes = {item.integer(1, MAX_SIZE) for item in members["sizes"].items()}
    else:
        if "min" not in members or "max" not in members:
            cursor.refuse("expected sizes, or min and max")
        first, last = members["min"].integer(1, MAX_SIZE), members["max"].integer(1, MAX_SIZE)
        if not first <= own <= last:
            cursor.refuse(f"expected min and max around the {own} chunks of the request, got {first} and {last}")
        sizes = {*range(first, last + 1)} if last - first <= MAX_SIZES else {own}
        if last - first > MAX_SIZES:
            cursor.refuse(f"expected at most {MAX_SIZES} other sizes")
    others = sorted(sizes - {own})
    if not 0 < len(others) <= MAX_SIZES:
        cursor.refuse(f"expected 1 to {MAX_SIZES} sizes other than {own}, got {len(others)}")
    known = _read_figures(members, model)
    times = _slowness(cursor, known, model, [own, *others])
    found = {size: ceil(walltime * times[size] / times[own]) for size in others}
    if max(found.values()) > MAX_DURATION:
        cursor.refuse(f"expected at most {MAX_DURATION} s on each size")
    return found


def _read_figures(members: Mapping[str, Cursor], model: str) -> dict[str, Fraction]:
    """Read the figures of a model; those of a table by the number of chunks."""
    if model == "table":
        known: dict[str, Fraction] = {}
        for key, factor in members["speedups"].entries():
            if not SIZE.fullmatch(key):
                factor.refuse(f"expected a number of chunks as key, got {key[:40]!r}")
            known[key] = _within(factor, 1, MAX_FIGURE)
        return known
    limits = {"serial": (0, 1), "parallelism": (1, MAX_FIGURE), "sigma": (0, MAX_FIGURE)}
    return {name: _within(members[name], *limits[name]) for name in FIGURES[model]}


def _within(cursor: Cursor, least: int, most: int) -> Fraction:
    figure = cursor.number()
    if not least <= figure <= most:
        cursor.refuse(f"expected a number from {least} to {most}, got {cursor.value!r}")
    return figure


def _slowness(cursor: Cursor, known: Mapping[str, Fraction], model: str, sizes: list[int]) -> dict[int, Fraction]:
    """Return the time of a job on each size, relative to that on one chunk."""
    if model == "table":
        for size in sizes:
            if str(size) not in known:
                cursor.refuse(f"expected the speed-up on {size} chunks too")
        return {size: 1 / known[str(size)] for size in sizes}
    if model == "amdahl":
        serial = known["serial"]
        return {size: serial + (1 - serial) / size for size in sizes}
    if model == "downey":
        return {size: _downey(known["parallelism"], known["sigma"], size) for size in sizes}
    return dict.fromkeys(sizes, Fraction(1))


def _downey(a: Fraction, sigma: Fraction, n: int) -> Fraction:
    """Return 1 / S(n) of Downey's model, of low variance up to sigma 1, and of high variance beyond."""
    if sigma <= 1:
        if n <= a:
            slowness = (2 * a + sigma * (n - 1)) / (2 * a * n)
        else:
            slowness = (sigma * (2 * a - 1) + n * (2 - sigma)) / (2 * a * n) if n < 2 * a - 1 else 1 / a
    else:
        slowness = (sigma * (n + a - 1) + a) / (n * a * (sigma + 1)) if n < a + a * sigma - sigma else 1 / a
    return min(Fraction(1), slowness)
