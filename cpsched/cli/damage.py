"""Files of the installation that are damaged or missing: which one, and the command that mends it.

A full disk, a limit of the size of files or a crash of the machine can leave such files: Python keeps what it compiled
beside the source, and truncated bytecode fails in every later process. Imports nothing of cpsched, whose files may be
the damaged ones.
"""

import importlib
import shlex
import sys
from pathlib import Path
from traceback import walk_tb

#: The exit code of commands that find a damaged file.
EXIT_CODE = 10

#: Files of Python's own that stand between an import and the file that has it.
_IMPORTERS = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>", importlib.__file__)
#: What loaders of shared libraries say of a truncated or overwritten one.
_BROKEN_LIBRARY = ("file too short", "invalid ELF header")


def damage_of(error: BaseException) -> str | None:
    """Describe the damaged file that an error is from, and the command that mends it.

    Returns None where the error is not from a damaged file. Source that is truncated or missing counts only where
    packages are installed: elsewhere somebody may be writing it.
    """
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    for frame in frames:
        if frame.f_code.co_filename in _IMPORTERS and frame.f_code.co_name == "_compile_bytecode":
            source, bytecode = (str(frame.f_locals.get(name)) for name in ("source_path", "bytecode_path"))
            return _told(bytecode, "is damaged", ["compileall", "-q", "-f", str(_package_of(Path(source)))])
    importing = [frame.f_code.co_filename for frame in frames if frame.f_code.co_filename not in _IMPORTERS]
    path, what = importing[-1] if importing else None, ""
    if isinstance(error, SyntaxError):
        path, what = error.filename, "is damaged"
    elif isinstance(error, ImportError | OSError) and any(words in str(error) for words in _BROKEN_LIBRARY):
        path, what = getattr(error, "path", None) or path, f"is damaged, or a library that it needs ({error})"
    elif isinstance(error, ModuleNotFoundError):
        what = f"needs {error.name}, which is missing"
    elif isinstance(error, ImportError):
        is_empty = error.path and Path(error.path).is_file() and Path(error.path).stat().st_size == 0
        path, what = error.path, "is empty" if is_empty else ""
    distributions = _distributions_of(Path(path)) if path is not None and what else None
    if not distributions:
        return None
    if "cpsched" in distributions:  # no index has it yet
        return _told(str(path), what, ["pip", "install", "--force-reinstall", "."]) + "  (in a checkout of cpsched)"
    return _told(str(path), what, ["pip", "install", "--force-reinstall", *distributions])


def _told(path: str, what: str, command: list[str]) -> str:
    mends = shlex.join([sys.executable, "-m", *command])
    return f"{path} {what}: the installation has lost something, as on a full disk\nmend it with: {mends}"


def _package_of(source: Path) -> Path:
    """Return the folder of the whole package that a module is part of; the module itself if it is alone."""
    while (source.parent / "__init__.py").exists():
        source = source.parent
    return source


def _distributions_of(path: Path) -> list[str] | None:
    """Return what pip calls the package that a file is of; None where it is of none that is installed."""
    import sysconfig
    from importlib.metadata import packages_distributions  # only now, as they take a while

    for folder in map(sysconfig.get_path, ("purelib", "platlib")):
        if path.is_relative_to(folder):
            return packages_distributions().get(path.relative_to(folder).parts[0].removesuffix(".py"))
    return None
