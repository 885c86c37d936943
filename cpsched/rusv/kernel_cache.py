"""Where compiled kernels are kept on disk: one private folder for each module and each state of its source.

Compiled code is loaded as it is found, so a folder that another user owns, or may write to, is never used. Where the
source lies does not matter: checkouts and installations with the same source share what is compiled.
"""

import atexit
import errno
import fcntl
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import ModuleType

#: Folders that no process has used for so long (seconds) are removed when a new one is made.
_UNUSED_FOR = 30 * 86400

#: How temporary folders begin, and the variable by which processes tell theirs to those that they start.
_PREFIX, _INHERITED = "cpsched-kernels-", "CPSCHED_TEMPORARY_KERNELS"

_folders: dict[str, Path] = {}
_owned: dict[Path, int] = {}
_warned: list[str] = []
_digests: dict[str, str] = {}


@contextmanager
def locked(folder: str, how: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold the lock of a folder, which the system takes back if the process ends."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


def folder_of_module(module_globals: Mapping[str, object]) -> Path:
    """Find or make the folder for the kernels of one module.

    `module_globals`: the globals of the module, after its imports. Returns a folder below ``XDG_CACHE_HOME`` or
    ``~/.cache``; a temporary one, removed at exit, where neither can be used.
    """
    name = str(module_globals["__name__"])
    if name not in _folders:
        _digests[name] = _digest(name, module_globals)
        _folders[name] = _private_folder(f"{name.removeprefix('cpsched.')}-{_digests[name][:16]}")
    return _folders[name]


def _digest(name: str, module_globals: Mapping[str, object]) -> str:
    """Digest all that the kernels of a module are made of: versions, source, imported constants, and the modules of
    this package that it imports from, with all that they are made of.

    numba itself looks only at the file of the function that it compiles: callers of changed kernels would go stale.
    """
    from importlib.metadata import version  # only now, as it takes a while

    digest = hashlib.sha256(version("numba").encode())
    digest.update(Path(str(module_globals["__file__"])).read_bytes())
    for key, value in sorted(module_globals.items()):
        if isinstance(value, int | float):
            digest.update(f"{key}={value!r};".encode())
        else:
            owner = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if isinstance(owner, str) and owner != name and owner.partition(".")[0] == __package__.partition(".")[0]:
                digest.update(f"{key}={_digest_of(owner)};".encode())
    return digest.hexdigest()


def _digest_of(name: str) -> str:
    """Digest an imported module, once."""
    if name not in _digests:
        _digests[name] = ""  # a package and its modules may import each other
        _digests[name] = _digest(name, vars(sys.modules[name]))
    return _digests[name]


def _private_folder(name: str) -> Path:
    base = _cache_base()
    if base is None:
        warn_once("there is no home folder to keep them in")
        return _below_temporary(name)
    folder = base / "cpsched" / name
    try:
        if not folder.exists():
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            _remove_unused(folder.parent)
        _check_private(folder.parent)
        _check_private(folder)
        os.utime(folder)
    except OSError as error:
        warn_once(f"{folder.parent} cannot be used ({error.strerror})")
        return _below_temporary(name)
    return folder


def _cache_base() -> Path | None:
    """Find the user's cache folder; a relative ``XDG_CACHE_HOME`` is ignored, as its specification asks."""
    stated = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if stated.is_absolute():
        return stated
    try:
        return Path("~/.cache").expanduser()
    except RuntimeError:  # no HOME, and no entry in the password file
        return None


def _check_private(folder: Path) -> None:
    """Raise a PermissionError unless `folder` is the user's own, not a link, and nobody else may write to it."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it is not a folder of this user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(errno.EPERM, "other users may write to it")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "it cannot be written to")


def _remove_unused(parent: Path) -> None:
    for folder in parent.iterdir():
        if folder.is_dir() and time.time() - folder.stat().st_mtime > _UNUSED_FOR:
            shutil.rmtree(folder, ignore_errors=True)


def _below_temporary(name: str) -> Path:
    folder = _temporary_folder() / name
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@cache
def _temporary_folder() -> Path:
    """Return the folder for this process and all that it starts; one that cannot be where there is no room for it.

    It is locked as long as one of them runs, and removed when this one ends, or by the next process that makes one.
    """
    with suppress(KeyError, OSError):
        inherited = Path(os.environ[_INHERITED])
        _check_private(inherited)
        if _is_held(inherited):
            return inherited
    try:
        _remove_left_behind()
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        if not _is_held(folder):  # another process took it for one that is left behind
            folder.mkdir(mode=0o700)
    except OSError:
        return Path(os.devnull) / "kernels"
    _owned[folder] = os.getpid()
    atexit.register(remove_temporary_kernels)
    os.environ[_INHERITED] = str(folder)
    return folder


def _is_held(folder: Path) -> bool:
    """Lock a temporary folder together with other processes, for the life of this one; return whether it is there."""
    with suppress(FileNotFoundError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
        with suppress(OSError):  # some file systems have no locks: nothing is removed there
            fcntl.flock(descriptor, fcntl.LOCK_SH)
    return folder.exists()


def _remove_left_behind() -> None:
    """Remove the temporary folders of this user that no process holds: those of killed ones."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            _check_private(folder)
            with locked(str(folder), fcntl.LOCK_EX | fcntl.LOCK_NB):
                shutil.rmtree(folder, ignore_errors=True)


def remove_temporary_kernels() -> None:
    """Remove the temporary folder of this process, which ends; copies of it, made by a fork, leave it alone."""
    for folder, owner in _owned.items():
        if owner == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)


def warn_once(reason: str) -> None:
    """Warn at the first reason: all modules have it, and processes that this one starts."""
    if _INHERITED not in os.environ and not _warned:
        _warned.append(reason)
        message = f"compiled kernels are not kept for the next run: {reason}"
        # without a line of source, which would say nothing to the user
        warnings.warn_explicit(message, RuntimeWarning, filename="cpsched", lineno=0)
