"""Slurm's texts for amounts: memory, generic resources (gres), trackable resources (TRES), licences."""

import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from cpsched.domain import Amounts

#: Generic resources that have a name of their own in cpsched.
_NAMES = {"gpu": "gpus", "mic": "mics"}
_UNITS: dict[str, int | Fraction] = {"": 1, "K": Fraction(1, 1024), "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)[nc]?", re.IGNORECASE)
_COUNT = re.compile(r"(\d+)([KMGT]?)", re.IGNORECASE)
_GRES = re.compile(r"([^:=()]+)((?:[:=][^:=()]*)*)(?:\((.*)\))?")
_PLAIN = re.compile(r"(cpu|mem)[:=](.+)")
_PLAIN_NAMES = {"cpu": "cores", "mem": "mem"}
_THOUSANDS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_LICENSE = re.compile(r"([^,:;=*|&\s]+)(?:[:=*](\d+))?")
_TIME = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")

#: Generic resources that are parts of a GPU which others cannot have then.
PARTS = frozenset({"mps", "shard"})
#: In what is used: the GPUs of which there are parts, and each of those of which some are in use.
_TOLD, _IN_USE = re.compile(r"\(IDX:([\d,-]+)\)"), re.compile(r"[(,]\d*[1-9]\d*/")
#: What a gres says of which there is enough for all, and how much that is.
_FREE = "no_consume"
_ENOUGH = 10**15
_NOTHING = ("", "(null)", "N/A", "none")


def _commas(text: str) -> Iterator[str]:
    """Yield the parts between commas that are in no brackets."""
    depth, begin = 0, 0
    for at, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth == 0:
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]


def count_ids(text: str) -> int:
    """Count the ids of a list, ``0-1,8``."""
    spans = (part.partition("-") for part in text.split(","))
    return sum(int(last or first) - int(first) + 1 for first, _, last in spans)


def memory(text: str) -> int:
    """Read an amount of memory, ``62.50G``, in MiB, rounded up; a number alone is MiB.

    Raises `ValueError` if it is none.
    """
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise ValueError(f"Expected an amount of memory such as 62.50G, got {text!r}")
    return -int(-(Fraction(match[1]) * _UNITS[match[2].upper()]) // 1)


def _count(text: str) -> int:
    match = _COUNT.fullmatch(text)
    if match is None:
        raise ValueError(f"Expected a number, got {text!r}")
    return int(match[1]) * _THOUSANDS[match[2].upper()]


def gres_amounts(text: str, *, prefixes: bool = False) -> Amounts:
    """Read generic resources, ``gpu:k20:2(S:0-1),mic:2``.

    Raises `ValueError` if it cannot be read, or asks for something that is no generic resource. `text`: what a node
    has, a job holds on a node, or (with prefixes) a job asks for. `prefixes`: whether each begins with ``gres:`` or
    ``gres/``, as in requests.

    Returns ``gpus`` for ``gpu``, ``mics`` for ``mic``, other names as they are; what has a type counts under
    ``gpus.k20`` as well. Nothing has an amount of 0.
    """
    found: dict[str, int] = {}
    if text in _NOTHING:
        return Amounts()
    for part in _commas(text):
        bare = part.strip()
        if prefixes:
            if bare[:5] not in ("gres:", "gres/"):
                raise ValueError(f"Expected generic resources, got {bare!r}")
            bare = bare[5:]
        match = _GRES.fullmatch(bare)
        pieces = [] if match is None else [piece for piece in re.split("[:=]", match[2]) if piece]
        if match is not None and match[3] is not None and match[3].startswith("CNT:"):
            pieces.append(match[3][4:])
        count = _count(pieces.pop()) if pieces and _COUNT.fullmatch(pieces[-1]) is not None else 1
        if _FREE in pieces:  # jobs take nothing of it
            pieces.remove(_FREE)
            count = _ENOUGH
        if match is None or len(pieces) > 1:
            raise ValueError(f"Expected generic resources such as gpu:k20:2, got {part!r}")
        name = match[1]
        ours = _NAMES.get(name, name)
        for key in (ours, *(f"{ours}.{kind}" for kind in pieces)):
            if count:
                found[key] = found.get(key, 0) + count
    return Amounts(found)


@lru_cache(maxsize=2**12)  # many jobs ask alike
def tres_requests(text: str) -> Amounts:
    """Read what a job asks for per node, task or job: ``cpu=4,mem=2G,gres/gpu:k20=1``, from 23.11 on also CPUs.

    Raises `ValueError` if it asks for something else, or cannot be read.
    """
    found: dict[str, int] = {}
    rest = []
    for part in _commas(text):
        match = _PLAIN.fullmatch(part.strip())
        if match is None:
            rest.append(part)
        else:
            found[_PLAIN_NAMES[match[1]]] = memory(match[2]) if match[1] == "mem" else _count(match[2])
    return Amounts({**found, **gres_amounts(",".join(rest), prefixes=True)})


def gres_of_node(text: str, drained: str = "", used: str = "") -> tuple[Amounts, str]:
    """Read the generic resources of a node, as far as they can be read, and return what is wrong with the others.

    `drained`: those that no job gets. Where their type is not said, none of each type does. `used`: those that jobs
    have: nobody gets a GPU of which somebody has a part.
    """
    is_shared = any(part in used for part in PARTS)
    if drained not in _NOTHING or is_shared:
        (has, said), (down, odd) = gres_of_node(text), gres_of_node(drained)
        shared, strange = _shared_gpus(has, used) if is_shared else (Counter[str](), "")
        gone, odd = Counter(down) + shared, "; ".join(filter(None, (odd, strange)))
        typed = {name.partition(".")[0] for name in gone if "." in name}
        kinds = {name: name.partition(".")[0] for name in has}
        lost = {name: gone.get(name, 0 if kind in typed else gone.get(kind, 0)) for name, kind in kinds.items()}
        left = {name: amount - lost[name] for name, amount in has.items() if amount > lost[name]}
        return Amounts(left), "; ".join(filter(None, (said, odd)))
    found, wrong = Counter[str](), list[str]()
    for part in _commas(text) if text not in _NOTHING else ():
        try:
            found.update(gres_amounts(part))
        except ValueError as error:
            wrong.append(str(error))
    return Amounts(found), "; ".join(wrong)


def _shared_gpus(has: Amounts, used: str) -> tuple[Counter[str], str]:
    """Return how many GPUs of a node are in use by parts, ``shard:3(2/4,1/4)`` or ``mps:50(IDX:0)``, and what is wrong.

    As many as are told, and at least as many as it takes.
    """
    found, wrong = Counter[str](), list[str]()
    for text in _commas(used):
        name, least = text.strip().partition(":")[0], 0
        try:
            parts = gres_amounts(text) if name in PARTS else Amounts()
            told = _TOLD.search(text)
            count = count_ids(told[1]) if told and parts else len(_IN_USE.findall(text))
        except ValueError as error:
            wrong.append(str(error))
            continue
        for key, amount in parts.items():  # the one with a type, if there is one, is the last and counts
            each = has.get(key, 0)
            least = -(-amount * has.get(key.replace(name, "gpus", 1), 0) // each) if each else 0
        found.update({key.replace(name, "gpus", 1): max(count, least) for key in parts})
    return found, "; ".join(wrong)


def tres_value(text: str, name: str) -> str | None:
    """Return one value of a list of trackable resources, ``cpu=8,mem=800M,node=1``; None where it is not in it."""
    for part in text.split(","):
        key, _, value = part.partition("=")
        if key == name:
            return value
    return None


def license_amounts(text: str) -> Amounts:
    """Read licences, ``matlab:2,ansys``.

    Raises `ValueError` if it cannot be read: one of several (``|``), for instance.
    """
    found: dict[str, int] = {}
    if text in _NOTHING:
        return Amounts()
    for part in text.replace(";", ",").split(","):
        if not part:
            continue
        match = _LICENSE.fullmatch(part)
        if match is None:
            raise ValueError(f"Expected licences such as matlab:2, got {text!r}")
        found[match[1]] = found.get(match[1], 0) + int(match[2] or 1)
    return Amounts(found)


def minutes(text: str) -> int | None:
    """Read a time of ``scontrol show``, ``1-00:30:00``, in seconds; None where there is no limit.

    Raises `ValueError` if it is none.
    """
    if text in ("UNLIMITED", "NONE", "INFINITE", "Partition_Limit", *_NOTHING):
        return None
    match = _TIME.fullmatch(text)
    if match is None or match[4] is None:
        raise ValueError(f"Expected a time such as 1-00:30:00, got {text!r}")
    days, hours, mins, secs = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + mins) * 60 + secs
