"""Readers, and what each of them may see: tokens, and the site's visibility."""

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from cpsched.domain import Check, Key, Name
from cpsched.errors import DocumentError, Fault
from cpsched.formats import read_settings

_HASH = re.compile(r"[0-9a-f]{64}")
_NO_HASH = "Expected 64 digits of a hash, 0-9 and a-f, got another text"


class Visibility(StrEnum):
    """The details that readers see of the jobs of others."""

    #: Everything.
    ALL = "all"
    #: When and where they run, but not whose they are, nor which.
    ANONYMOUS = "anonymous"
    #: Nothing, but how much of the cluster they have.
    OWN = "own"


@dataclass(frozen=True, slots=True)
class Viewer:
    """The sender of a request."""

    #: As limits count it: the holder of a token, or an address.
    key: str
    user: str | None = None
    is_operator: bool = False
    #: Whether the request has a token.
    is_known: bool = False

    def sees_all(self, visibility: Visibility) -> bool:
        """Tell whether it sees everything."""
        return self.is_operator or visibility is Visibility.ALL


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token by its hash, and its holder."""

    sha256: Annotated[str, Check(lambda text: None if _HASH.fullmatch(text) else _NO_HASH), Key("Of the token")]
    user: Annotated[Name | None, Key("Whose jobs are the holder's own")] = None
    operator: Annotated[bool, Key("Whether the holder sees and may do everything")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tokens:
    tokens: Annotated[tuple[Token, ...], Key("All tokens")]


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Read a file of tokens, TOML with ``[[tokens]]``.

    Raises `DocumentError` with everything that is wrong with it, and if others than its owner can read it.
    """
    source = str(path)
    found, faults = read_settings(path, _Tokens)
    if path.stat().st_mode & 0o077:
        fault = Fault("file", "Expected a file that only its owner can read (mode 0600), as it lets its reader in")
        raise DocumentError(source, [fault])
    hashes = [one.sha256 for one in found.tokens]
    for index, one in enumerate(found.tokens):
        if one.sha256 in hashes[:index]:
            faults.add(("tokens", index, "sha256"), "Expected each token once, got it twice")
        if one.user is None and not one.operator:
            faults.add(("tokens", index), "Expected a user, or operator = true, got neither")
    faults.raise_if_any(source)
    return found.tokens


def of_token(text: str, tokens: Sequence[Token]) -> Token | None:
    """Return the token that a text is; None: it is none.

    All tokens are compared, each in the same time, so that the time tells nothing about them.
    """
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    found = None
    for token in tokens:
        if hmac.compare_digest(token.sha256, digest):
            found = token
    return found
