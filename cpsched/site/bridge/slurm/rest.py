"""slurmrestd: its answers over a unix socket or loopback, within a time limit, without the commands of Slurm."""

import getpass
import http.client
import json
import re
import socket
import stat
import time
from pathlib import Path
from typing import Any

from cpsched.errors import BridgeError
from cpsched.text import printable

#: ``unix:/run/slurmrestd.sock``, or a port of this machine: a token in plain text does not leave it.
ADDRESS = re.compile(r"unix:(?P<path>/[^\0]*)|http://(?P<host>127\.0\.0\.1|\[::1\]):(?P<port>\d{1,5})/?")
#: The path of the jobs, by which the newest version of the interface is found.
_JOBS = re.compile(r"/slurm/(v0\.0\.(\d+))/jobs/?")
_MOST_BYTES = 512 * 2**20
_READ = 2**18
_LONGEST_SAID = 300
#: The bits of a file's mode by which others than its owner can read it.
_OTHERS = stat.S_IRGRP | stat.S_IROTH


class _Socket(socket.socket):
    """A socket of which nothing is read after some second of the monotonic clock. Mutable."""

    end: float

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        """Read what has come."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.settimeout(left)
        return super().recv_into(*arguments, **options)


class _Connection(http.client.HTTPConnection):
    """HTTP over a socket of this machine, with a time limit for all of it."""

    def __init__(self, family: int, where: str | tuple[str, int], seconds: float) -> None:
        super().__init__("localhost")
        self._family, self._where, self._seconds = family, where, seconds

    def connect(self) -> None:
        """Connect."""
        self.sock = _Socket(self._family, socket.SOCK_STREAM)
        self.sock.end = time.monotonic() + self._seconds
        self.sock.settimeout(self._seconds)
        self.sock.connect(self._where)


class RestServer:
    """A slurmrestd of this machine, which is asked and never told anything. Mutable: it remembers the version.

    `address`: as `ADDRESS` has it.
    `token`: the file with the token of the account (JWT), which only its owner can read; None: the server knows the
      account by the socket.
    `seconds`: how long one answer may take.
    """

    def __init__(self, address: str, *, token: Path | None = None, seconds: float = 20) -> None:
        found = ADDRESS.fullmatch(address)
        if found is None:
            raise ValueError(f"expected unix:/PATH or http://127.0.0.1:PORT, got {address!r}")
        self.address, self._parts, self._token, self._seconds = address, found, token, seconds
        self._version: str | None = None

    def get(self, kind: str) -> bytes:
        """Return the answer about ``jobs``, ``nodes``, ``partitions``, ``reservations`` or ``licenses``, unread.

        Raises `BridgeError` if there is no answer in time, or a failure, or the token cannot be read.
        """
        version, self._version = self._version or self._newest(), None
        data = self._fetch(f"/slurm/{version}/{kind}")
        self._version = version  # a server that is another one by now is asked for its version again
        return data

    def _newest(self) -> str:
        data = self._fetch("/openapi/v3")
        try:
            found = [match for path in json.loads(data)["paths"] if (match := _JOBS.fullmatch(path))]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._error("/openapi/v3", f"Expected the paths of slurmrestd, got: {error!r}") from None
        if not found:
            raise self._error("/openapi/v3", "Expected a path /slurm/v0.0.N/jobs, got none")
        return max(found, key=lambda match: int(match[2]))[1]

    def _fetch(self, path: str) -> bytes:
        headers = {"Accept": "application/json", "Connection": "close", **self._credentials(path)}
        connection = self._connection()
        body = bytearray()
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            while len(body) <= _MOST_BYTES and (part := response.read1(_READ)):
                body += part
        except TimeoutError:
            raise self._error(path, f"Expected an answer within {self._seconds:g} s, got none") from None
        except (OSError, http.client.HTTPException) as error:
            raise self._error(path, f"Expected an answer, got: {type(error).__name__}: {error}") from None
        finally:
            connection.close()
        if response.status != http.HTTPStatus.OK or response.length not in (None, 0) or len(body) > _MOST_BYTES:
            said = printable(body[:_LONGEST_SAID].decode("utf-8", "replace")) or "nothing"
            raise self._error(path, f"Expected a whole answer with status 200, got {response.status}: {said}")
        return bytes(body)

    def _connection(self) -> _Connection:
        parts = self._parts
        if parts["path"] is not None:
            return _Connection(socket.AF_UNIX, parts["path"], self._seconds)
        host = parts["host"].strip("[]")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return _Connection(family, (host, int(parts["port"])), self._seconds)

    def _credentials(self, path: str) -> dict[str, str]:
        """Return the headers that say who asks; no message has the token."""
        if self._token is None:
            return {}
        try:
            mode, text = self._token.stat().st_mode, self._token.read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise self._error(path, f"Expected the token in {self._token}, got: {type(error).__name__}") from None
        if mode & _OTHERS or not text or not text.isprintable() or " " in text:
            message = (
                f"Expected {self._token} to have one token, and to be readable by its owner only, got another file"
            )
            raise self._error(path, message)
        return {"X-SLURM-USER-NAME": getpass.getuser(), "X-SLURM-USER-TOKEN": text}

    def _error(self, path: str, message: str) -> BridgeError:
        return BridgeError(("GET", self.address, path), printable(message)[:_LONGEST_SAID])
