"""Readers, and what each of them may see: tokens, and the site's visibility."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from cpsched.errors import DocumentError, Fault
from cpsched.formats import DocumentModel, Omittable, keys_of_models, read_settings


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


class Token(DocumentModel):
    """A token by its hash, and its holder."""

    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] = Field(description="Of the token")
    user: Omittable[Annotated[str, StringConstraints(min_length=1, max_length=256)]] = Field(
        None, description="Whose jobs are the holder's own"
    )
    operator: bool = Field(False, description="Whether the holder sees and may do everything")


class _TokensModel(DocumentModel):
    """The whole file."""

    tokens: list[Token] = Field(description="All tokens")


_KEYS = keys_of_models({"Token": Token, "_TokensModel": _TokensModel})


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Read a file of tokens, TOML with ``[[tokens]]``.

    Raises `DocumentError` with everything that is wrong with it, and if others than its owner can read it.
    """
    source = str(path)
    found, faults = read_settings(path, _TokensModel, _KEYS)
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
    return tuple(found.tokens)


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
