"""The features of nodes for which jobs of Slurm ask (``--constraint``)."""

import re
from collections.abc import Callable, Collection, Iterator

from cpsched.site.bridge.leaving import Inexpressible

_WORD = r"[^&|,\[\]()*\s]+"
#: Features of which all nodes of a job have the same one.
ALIKE = re.compile(rf"\[{_WORD}(?:\|{_WORD})+\]")
_COUNT = re.compile(rf"({_WORD})(?:\*(\d{{1,4}}))?")
#: Features that all of a job's nodes have, each one of several; in no brackets only if they are all that is asked for.
_FEATURES = re.compile(
    rf"|{_WORD}(\|{_WORD})+|(?:{_WORD}|\({_WORD}(?:\|{_WORD})+\))(?:&(?:{_WORD}|\({_WORD}(?:\|{_WORD})+\)))*"
)


def feature_property(feature: str) -> str:
    """Return the property of nodes that have a feature."""
    return f"feature.{feature}"


def alternatives(text: str) -> Iterator[str]:
    """Yield the parts of a text of features that are one of several: ``a|b``."""
    for part in text.strip("[]").split("&"):
        if "|" in part:
            yield part.strip("()")


def counted_features(text: str) -> list[str]:
    """Return the feature of each node of a job that counts them, ``[a*2&b*1]``; empty of all others."""
    parts = [_COUNT.fullmatch(part) for part in text.strip("[]").split("&")]
    if not text or any(part is None for part in parts) or "*" not in text:
        return []
    return [part[1] for part in parts if part is not None for _ in range(int(part[2] or 1))]


def features_of(text: str) -> Callable[[Collection[str]], bool]:
    """Return the test whether the features of a node are those that a job asks for: ``a&b``, ``a|b``, ``a&(b|c)``.

    ``[a|b]`` is read as ``a|b``, which of one node is the same. Raises `Inexpressible` if it is something else.
    """
    text = text.strip("[]")
    if not _FEATURES.fullmatch(text):
        raise Inexpressible(f"it asks for features in a way that cannot be said ({text})")
    kinds = [frozenset(part.strip("()").split("|")) for part in text.split("&")] if text else []
    return lambda has: all(not one.isdisjoint(has) for one in kinds)
