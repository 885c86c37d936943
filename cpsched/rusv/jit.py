"""The one place where kernels are made: `kernel`, `inner_kernel` and `allocating_kernel` decorate plain functions.

numba is imported when the first kernel is compiled, or loaded: Python interprets those of a window of few jobs sooner.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, update_wrapper
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from cpsched.rusv import kernel_cache

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound=tuple[Any, ...])

_is_interpreting = ContextVar("_is_interpreting", default=False)
_listeners: list[Callable[[], None]] = []


@contextmanager
def announced(notify: Callable[[], None]) -> Iterator[None]:
    """Make a context in which `notify` is called once if kernels must be compiled, which takes a while."""
    _listeners.append(notify)
    try:
        yield
    finally:
        if notify in _listeners:
            _listeners.remove(notify)


def announce() -> None:
    """Call the listeners, once, when a kernel is compiled, and not loaded."""
    while _listeners:
        _listeners.pop()()


@contextmanager
def own_interpretation() -> Iterator[None]:
    """Make a context that ends what `interpret` began in it."""
    token = _is_interpreting.set(_is_interpreting.get())
    try:
        yield
    finally:
        _is_interpreting.reset(token)


def interpret(*, wanted: bool | None = None) -> bool:
    """Have Python interpret the kernels from now on, in this thread, or numba compile them; None: as now.

    Returns whether they are interpreted: not if the process has compiled ones.
    """
    if wanted is not None:
        _is_interpreting.set(wanted and not _Kernel.has_compiled)
    return _is_interpreting.get()


class _Kernel:
    """A function on arrays that Python interprets or numba compiles; its results are the same."""

    has_compiled = False

    def __init__(self, function: Callable[..., Any], **options: bool) -> None:
        self._function, self._options = function, options
        update_wrapper(self, function)

    def __call__(self, *args: object) -> Any:
        """Interpret the function, or call what is compiled."""
        return _plain(self._interpreted(*args)) if _is_interpreting.get() else self._compiled(*args)

    @cached_property
    def _interpreted(self) -> Callable[..., Any]:
        """The function, which calls those of other kernels themselves."""
        names = _direct_names(self._function.__globals__)
        return FunctionType(self._function.__code__, names, argdefs=self._function.__defaults__)

    @cached_property
    def _compiled(self) -> Any:
        from cpsched.rusv.compiler import compiled

        _Kernel.has_compiled = True
        return compiled(self._function, self._options)

    @property
    def is_kept(self) -> bool:
        """Whether the function was compiled on this machine before."""
        folder = kernel_cache.folder_of_module(self._function.__globals__)
        return any(folder.glob(f"*.{self._function.__name__}-*.nbi"))

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of what is compiled; by ``_numba_type_`` numba takes the one for the other."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._compiled, name)


#: The names of modules with functions in place of kernels, by the identities of those with kernels.
_direct: dict[int, dict[str, Any]] = {}


def _direct_names(names: dict[str, Any]) -> dict[str, Any]:
    """Return the names of a module with what Python interprets in place of kernels."""
    found = _direct.get(id(names))
    if found is None:
        found = _direct[id(names)] = dict(names)  # kernels of two modules may call each other
        found.update((name, one._interpreted) for name, one in names.items() if isinstance(one, _Kernel))
    return found


def viewed(arrays: T, *rows: str) -> T:
    """Return a bundle with views of its arrays, whose numbers Python reads in half the time, as its own; but of `rows`,
    the tables of which kernels take rows.
    """
    pairs = zip(arrays._fields, arrays, strict=True)  # type: ignore[attr-defined]  # a NamedTuple
    return type(arrays)(*(one if name in rows and one.ndim > 1 else memoryview(one) for name, one in pairs))


def _plain(result: Any) -> Any:
    """Return Python's numbers in place of numpy's, as compiled kernels do."""
    if isinstance(result, tuple):
        plain = map(_plain, result)
        return type(result)(*plain) if hasattr(result, "_fields") else tuple(plain)
    return result.item() if isinstance(result, np.generic) else result


def kernel(function: F) -> F:
    """Compile `function` at its first call; it runs without the GIL and without checks, which the wrapper owns.

    A kernel only borrows its arrays, from its caller: it makes none and returns none. So their references are not
    counted, which costs more than the work of a small kernel that gets all arrays of a timeline.
    """
    return cast(F, _Kernel(function))


def inner_kernel(function: F) -> F:
    """Compile `function` like `kernel`, for calls by other kernels only."""
    return cast(F, _Kernel(function, no_cpython_wrapper=True))


def interpret_as(kernel: Callable[..., Any], function: Callable[..., Any]) -> None:
    """Interpret another function in place of a kernel, which returns the same: numpy's for a loop over many nodes."""
    vars(kernel)["_interpreted"] = function


def allocating_kernel(function: F) -> F:
    """Compile `function` like `kernel`; it may make arrays, whose references are counted."""
    return cast(F, _Kernel(function, _nrt=True))
