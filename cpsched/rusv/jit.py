"""The one place where kernels are compiled: `kernel`, `inner_kernel` and `allocating_kernel` decorate plain
functions on arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

from numba.core import config, event, sigutils, types
from numba.core.registry import CPUDispatcher

from cpsched.garbage import uncollected
from cpsched.rusv import symbols
from cpsched.rusv.bundles import bundle_of, is_bundle
from cpsched.rusv.kernel_cache import KernelCache

__all__ = ["allocating_kernel", "announced", "inner_kernel", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])

#: No kernel is called by C, which numba would prepare.
_OPTIONS = {"nopython": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False}


class _Announcer(event.Listener):
    """Calls back once when a kernel is compiled, not when it is loaded from the cache."""

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify: Callable[[], None] | None = notify

    def on_start(self, event: object) -> None:
        """Call back at the first compilation."""
        notify, self._notify = self._notify, None
        if notify is not None:
            notify()

    def on_end(self, event: object) -> None:
        """Ignore the end of a compilation."""


def announced(notify: Callable[[], None]) -> AbstractContextManager[None]:
    """Make a context in which `notify` is called once if kernels must be compiled, which takes a while."""
    context: AbstractContextManager[None] = event.install_listener("numba:compile", _Announcer(notify))
    return context


class _Kernel(CPUDispatcher):
    """A compiled function whose code is one for all constants that other kernels give it.

    numba on its own compiles a function once more for each constant that stands as an argument in a call.
    """

    def enable_caching(self) -> None:
        """Keep compiled code in the folder of the kernel's module."""
        self._cache = KernelCache(self.py_func)

    def compile(self, sig: Any) -> Any:
        """Compile for one signature, or load what was compiled, unless that was done before."""
        args = tuple(sigutils.normalize_signature(sig)[0])
        if args in self.overloads:
            return super().compile(sig)
        with uncollected():
            entry = super().compile(sig)
        symbols.register(self, args)
        return entry

    def typeof_pyval(self, val: Any) -> Any:
        """Find the type of an argument: named tuples are bundles."""
        return bundle_of(val) if is_bundle(val) else super().typeof_pyval(val)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how a kernel is called from another one: by the types of the arguments without their values, and by
        one type for all whole numbers.
        """
        return super().get_call_template(
            tuple(_widened(arg) for arg in args), {name: _widened(arg) for name, arg in kws.items()}
        )


class _InnerKernel(_Kernel):
    """A kernel without the code by which Python calls it, which takes a third of the time to compile a small one."""

    def add_overload(self, cres: Any) -> None:
        """Keep compiled code for other kernels only."""
        self.overloads[tuple(cres.signature.args)] = cres

    def _compile_for_args(self, *args: object, **kws: object) -> None:
        """Refuse a call by Python."""
        raise TypeError(f"{self.py_func.__qualname__} is an inner kernel, which other kernels call, and Python cannot")


def _widened(type_of_argument: Any) -> Any:
    """Return the type by which an argument is handed on."""
    unliteral: Any = types.unliteral
    plain = unliteral(type_of_argument)
    return types.int64 if plain == types.int32 else plain


def kernel(function: F) -> F:
    """Compile `function` at its first call; it runs without the GIL and without checks, which the wrapper owns.

    A kernel only borrows its arrays, from its caller: it makes none and returns none. So their references are not
    counted, which costs more than the work of a small kernel that gets all arrays of a timeline.
    """
    return _compiled(_Kernel, function)


def inner_kernel(function: F) -> F:
    """Compile `function` like `kernel`, for calls by other kernels only."""
    return _compiled(_InnerKernel, function, no_cpython_wrapper=True)


def allocating_kernel(function: F) -> F:
    """Compile `function` like `kernel`; it may make arrays, whose references are counted."""
    return _compiled(_Kernel, function, _nrt=True)


def _compiled(kind: type[_Kernel], function: F, **options: bool) -> F:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # numba sets its options at run time
        return function
    compiled = kind(function, targetoptions={**_OPTIONS, **options}, pipeline_class=symbols.Compiler)
    compiled.enable_caching()
    return cast(F, compiled)
