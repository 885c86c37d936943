"""The small notations of job scripts: sizes, durations, names. Each refuses what it does not understand."""

import re

from cpsched.domain import MAX_AMOUNT, MAX_NAME
from cpsched.formats.faults import UnusableLine, shown

_MEBIBYTE = 2**20
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
_SIZE = re.compile(r"([0-9]{1,15})([kmgtp]?)(b?)", re.IGNORECASE | re.ASCII)
_DIGITS = re.compile(r"[0-9]{1,15}")
#: The characters of node names, properties, features and names of resources.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
#: Seconds of days, hours, minutes and seconds, read from the right.
_PLACES = (1, 60, 3600, 86400)


def mebibytes(text: str, *, default: str = "") -> int:
    """Return a size such as ``8gb``, ``500M`` or ``1024``, rounded up to MiB.

    `text`: units are powers of 1024. `default`: the unit of a plain number: bytes for Torque, ``m`` for Slurm.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UnusableLine(f"Expected a size such as 8gb, got {shown(text)}")
    unit = match[2].lower() or ("" if match[3] else default)
    size = -(-int(match[1]) * _UNITS[unit] // _MEBIBYTE)
    if size > MAX_AMOUNT:
        raise UnusableLine(f"Expected at most {MAX_AMOUNT} MiB, got {shown(text)}")
    return size


def count(text: str, what: str, *, least: int = 0) -> int:
    """Return a whole number of at least `least`."""
    if not _DIGITS.fullmatch(text) or not least <= int(text) <= MAX_AMOUNT:
        raise UnusableLine(f"Expected {what}, a number from {least} to {MAX_AMOUNT}, got {shown(text)}")
    return int(text)


def number(value: object, what: str, *, below: float) -> float:
    """Return a number of JSON from 0 on."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < below:
        raise UnusableLine(f"Expected {what}, got {shown(value)}")
    return value


def checked_name(text: str, what: str) -> str:
    """Return a name that is fit to be one of a node, a property or a resource."""
    if not _NAME.fullmatch(text) or len(text) > MAX_NAME:
        raise UnusableLine(f"Expected {what}, letters and digits, got {shown(text)}")
    return text


def torque_seconds(text: str) -> int:
    """Return ``[[[D:]H:]M:]S`` in seconds."""
    return _seconds(text.split(":"), text)


def slurm_seconds(text: str) -> int:
    """Return a time limit, ``M``, ``M:S``, ``H:M:S``, ``D-H``, ``D-H:M`` or ``D-H:M:S``, in seconds."""
    days, dash, rest = text.rpartition("-")
    parts = rest.split(":")
    if dash:
        parts = [days, *parts, *["0"] * (3 - len(parts))]
    elif len(parts) == 1:
        parts = [*parts, "0"]
    return -(-_seconds(parts, text) // 60) * 60


def _seconds(parts: list[str], text: str) -> int:
    if len(parts) > len(_PLACES) or not all(map(_DIGITS.fullmatch, parts)):
        raise UnusableLine(f"Expected a duration such as 08:00:00, got {shown(text)}")
    return sum(int(part) * seconds for part, seconds in zip(reversed(parts), _PLACES, strict=False))
