"""What numba compiles kernels with: imported when the first one is compiled or loaded, not where Python interprets."""

from collections.abc import Callable
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Any

from numba.core import config, sigutils, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys

from cpsched.gc_pauses import uncollected
from cpsched.rusv import jit, kernel_cache, symbols
from cpsched.rusv.bundles import bundle_of, is_bundle

#: No kernel is called by C, which numba would prepare.
_OPTIONS = {"nopython": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False}


def compiled(function: Callable[..., Any], options: dict[str, bool]) -> Any:
    """Return what compiles a kernel at its first call; the function itself where numba is told to compile nothing."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # numba sets its options at run time
        return function
    kind = _InnerDispatcher if "no_cpython_wrapper" in options else _Dispatcher
    made = kind(function, targetoptions={**_OPTIONS, **options}, pipeline_class=symbols.Compiler)
    made.enable_caching()
    return made


class _Dispatcher(CPUDispatcher):
    """A compiled function whose code is one for all constants that other kernels give it.

    numba on its own compiles a function once more for each constant that is an argument in a call.
    """

    def enable_caching(self) -> None:
        """Keep compiled code in the folder of the kernel's module."""
        self._cache = _KernelCache(self.py_func)

    def compile(self, sig: Any) -> Any:
        """Compile for one signature, or load what was compiled, unless that was done before."""
        args = tuple(sigutils.normalize_signature(sig)[0])  # type: ignore[no-untyped-call]
        if args in self.overloads:
            return super().compile(sig)
        with uncollected(), global_compiler_lock:
            # numba's own method measures how long it waits for locks, anew in each kernel that is loaded for others
            loaded = self._cache.load_overload(sig, self.targetctx)
            if loaded is None:
                entry = super().compile(sig)
            else:
                self._cache_hits[args] += 1  # type: ignore[attr-defined]  # numba has no types
                insert: Any = self.targetctx.insert_user_function
                insert(loaded.entry_point, loaded.fndesc, [loaded.library])
                self.add_overload(loaded)
                entry = loaded.entry_point
        symbols.register(self, args)
        return entry

    def typeof_pyval(self, val: Any) -> Any:
        """Find the type of an argument: named tuples are bundles."""
        return bundle_of(val) if is_bundle(val) else super().typeof_pyval(val)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how a kernel is called from another one: by types without values, with one for all whole numbers."""
        return super().get_call_template(
            tuple(_widened(arg) for arg in args), {name: _widened(arg) for name, arg in kws.items()}
        )


class _InnerDispatcher(_Dispatcher):
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


class _FolderOfModule(_CacheLocator):
    """Keeps the kernels of a module in its folder, whose name is a digest of the source: it needs no other stamp."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._path = str(kernel_cache.folder_of_module(function.__globals__))
        self._line = str(function.__code__.co_firstlineno)
        self._py_file = file  # numba names it where code cannot be kept

    def get_cache_path(self) -> str:
        """Return the folder."""
        return self._path

    def get_source_stamp(self) -> str:
        """Return the same stamp for all sources."""
        return ""

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name apart: the line on which they begin."""
        return self._line

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "_FolderOfModule":
        """Make the locator of a function, wherever its file lies."""
        return cls(py_func, py_file)


class _InFolderOfModule(CompileResultCacheImpl):
    """How numba writes and reads compiled code, with our place for it."""

    _locator_classes = [_FolderOfModule]  # noqa: RUF012  # numba has no types

    def reduce(self, cres: Any) -> Any:
        """Return what is written: the kernels that compiled code calls, whether others call it, and the code, without
        a listing of its types, and without what only those would need that contain it.
        """
        is_called = symbols.is_called(cres)
        code = super().reduce(cres._replace(type_annotation=""))  # type: ignore[no-untyped-call]
        if is_called:
            (name, kind, (compiled, _)), *others = code
            code = ((name, kind, (compiled, symbols.outline(cres))), *others)
        return symbols.symbols_in(cres), is_called, code

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Load the kernels that compiled code calls, then the code: a symbol that is not there ends the process."""
        called, is_called, code = payload
        for symbol in called:
            symbol.load()
        cres = super().rebuild(target_context, code)  # type: ignore[no-untyped-call]
        symbols.note_size(cres, is_called=is_called)
        return cres


class _KernelCache(FunctionCache):
    """The compiled code of one kernel on disk, by the types of its arguments; several processes may write at a time."""

    _impl_class = _InFolderOfModule

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]  # numba has no types

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load compiled code; None where there is none. Files that cannot be read are removed: it is compiled anew."""
        loaded = None
        try:
            # numba's own method first loads all that it can compile, which takes longer than to load a kernel
            rtsys.initialize(target_context)
            loaded = self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]  # numba has no types
        except MemoryError:
            raise
        except Exception:  # unpickling a damaged file raises anything
            with suppress(OSError), kernel_cache.locked(self.cache_path):
                for file in Path(self.cache_path).glob(f"{escape(self._impl.filename_base)}.*"):
                    file.unlink(missing_ok=True)
        if loaded is None:
            jit.announce()
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save compiled code; alone, as two writers could choose the same file for different types.

        Where it cannot be saved, as on a full disk, this process has it all the same.
        """
        try:
            with kernel_cache.locked(self.cache_path):
                super().save_overload(sig, data)  # type: ignore[no-untyped-call]  # numba has no types
        except OSError as error:
            kernel_cache.warn_once(f"{self.cache_path} cannot be written to ({error.strerror})")
