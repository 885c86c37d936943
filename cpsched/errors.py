"""The whole error tree of cpsched.

::

    CpschedError
    ├── DocumentError      a document was refused: all its faults, each with its path
    ├── SyntaxFault        a short text (a request, a host list) was refused: where, expected, got
    ├── EngineError        an engine could not do its work
    │   ├── UnsupportedError   the instance asks for what this engine cannot honour yet
    │   └── UnverifiedError    the engine's own plan breaks rules: a bug of cpsched
    ├── DiskFullError      a file could not be written: there is no room for it
    ├── CampaignError      a campaign cannot be run: a package or a cluster is missing
    ├── ReportError        a report cannot be made: a package is missing, or there is nothing to show
    ├── BridgeError        a command of the resource manager failed
    └── StoreError         the daemon's store could not be read or written

A solver that dies while others improve a plan is a `SolverWarning`. A job that cannot be planned is no error: it is
data, in the plan's waiting room. A programmer's mistake is a `ValueError`: so is an argument of a wrong type or out of
its limits (`cpsched.arguments`). This module imports nothing of cpsched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field


class CpschedError(Exception):
    """Base of every error that cpsched raises on purpose."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a document.

    Attributes
    ----------
    path : str
        Where, in the document's own words: ``jobs[17].walltime``; empty for the document as a whole.
    message : str
        What was expected and what was got, in one sentence.
    entry : str
        What the entry of the list at the path is called, ``job "1201"``; empty where it has no name.
    """

    path: str
    message: str
    entry: str = field(default="", compare=False)

    def __str__(self) -> str:
        place = f"{self.path} ({self.entry})" if self.entry else self.path
        return f"{place}: {self.message}" if self.path else self.message


class DocumentError(CpschedError):
    """A document was refused.

    Attributes
    ----------
    source : str
        The file or stream that the document came from.
    faults : tuple of Fault
        Everything that is wrong with it, in document order, at least one.
    """

    def __init__(self, source: str, faults: Sequence[Fault]) -> None:
        if not faults:
            raise ValueError("a DocumentError needs at least one fault")
        self.source = source
        self.faults = tuple(faults)
        super().__init__(source, self.faults)

    def __str__(self) -> str:
        count = len(self.faults)
        head = f"{self.source}: {count} fault{'s' if count > 1 else ''}"
        return "\n".join([head, *(f"  {fault}" for fault in self.faults)])


class SyntaxFault(CpschedError):
    """A short text was refused; the message points at the place with a caret.

    Attributes
    ----------
    text : str
        The whole text.
    span : tuple of int
        Half-open character range of the offending part.
    message : str
        What was expected and what was got.
    """

    def __init__(self, text: str, span: tuple[int, int], message: str) -> None:
        self.text = text
        self.span = span
        self.message = message
        super().__init__(text, span, message)

    def __str__(self) -> str:
        start, end = self.span
        return f"{self.message}\n    {self.text}\n    {' ' * start}{'^' * max(1, end - start)}"


class EngineError(CpschedError):
    """An engine could not do its work."""


class SolverWarning(RuntimeWarning):
    """A solver died while it improved a plan: the answer is the best plan of the others."""


class UnsupportedError(EngineError):
    """The instance asks for something that the engine cannot honour yet.

    Attributes
    ----------
    engine : str
        Name of the engine that refuses.
    features : tuple of str
        What it cannot honour, each with the place that asks for it.
    """

    def __init__(self, engine: str, features: Sequence[str]) -> None:
        self.engine = engine
        self.features = tuple(features)
        super().__init__(engine, self.features)

    def __str__(self) -> str:
        listed = "\n".join(f"  {feature}" for feature in self.features)
        return f"the engine {self.engine!r} cannot honour what this instance asks for:\n{listed}"


class UnverifiedError(EngineError):
    """The engine's own plan breaks rules, which is a bug of cpsched.

    Attributes
    ----------
    engine : str
        Name of the engine whose plan it is.
    violations : tuple of str
        All that is wrong with the plan.
    """

    def __init__(self, engine: str, violations: Sequence[str]) -> None:
        self.engine = engine
        self.violations = tuple(violations)
        super().__init__(engine, self.violations)

    def __str__(self) -> str:
        listed = "\n".join(f"  {violation}" for violation in self.violations[:20])
        if len(self.violations) > 20:
            listed += f"\n  ... and {len(self.violations) - 20} more"
        return f"the plan of {self.engine!r} breaks rules; this is a bug, and nothing was written:\n{listed}"


class DiskFullError(CpschedError):
    """A file could not be written: the disk is full, or a quota or the limit of a file's size is reached.

    Attributes
    ----------
    path : str
        The file. An older file of that name is as it was.
    reason : str
        What the system says.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(path, reason)

    def __str__(self) -> str:
        return f"{self.path}: Expected room to write it, got: {self.reason}"


class ReportError(CpschedError):
    """A report cannot be made: a package is missing, or what was given has nothing to show."""


class CampaignError(CpschedError):
    """A campaign cannot be run: a package that it needs, or the cluster to run it on, is missing."""


class BridgeError(CpschedError):
    """A command of the resource manager failed.

    Attributes
    ----------
    command : tuple of str
        The command line that was run, as a list.
    """

    def __init__(self, command: Sequence[str], message: str) -> None:
        self.command = tuple(command)
        super().__init__(self.command, message)

    def __str__(self) -> str:
        return f"{' '.join(self.command)}: {self.args[1]}"


class StoreError(CpschedError):
    """The daemon's store could not be read or written."""
