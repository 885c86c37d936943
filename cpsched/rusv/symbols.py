"""Kernels that are compiled once and then called: the symbols by which compiled kernels find each other.

numba on its own compiles a kernel once more in each kernel that calls it, and in all that call these. Here only small
kernels are, which are faster inside their callers. All others are called by their symbols, which are the same in each
process, so that a kernel and those that it calls may come from the cache or from the compiler.
"""

import importlib
from typing import Any, NamedTuple

from llvmlite.binding import parse_assembly
from numba.core.compiler import Compiler as NumbaCompiler

#: A kernel of more LLVM instructions is called. LLVM compiles functions of up to some fifty into their callers.
_MOST_INLINED = 40


class Symbol(NamedTuple):
    """Where the kernel behind a symbol is found, and the types of its arguments."""

    module: str
    name: str
    args: tuple[Any, ...]

    def load(self) -> None:
        """Load the kernel, or compile it, and all that it calls."""
        getattr(importlib.import_module(self.module), self.name).compile(self.args)


_symbols: dict[str, Symbol] = {}
#: Whether the kernel behind a symbol is called by others.
_is_called: dict[str, bool] = {}


class Compiler(NumbaCompiler):
    """Names a kernel by the line on which it begins; numba does by a counter, which each process begins anew.

    A kernel that is local to a function keeps its number: the same lines may make several.
    """

    def _compile_bytecode(self) -> Any:
        identity = self.state.func_id
        if not _is_local(identity.func_qualname):
            identity.unique_id = identity.firstlineno
            identity.unique_name = f"{identity.func_qualname}${identity.firstlineno}"
        return super()._compile_bytecode()


def register(kernel: Any, args: tuple[Any, ...]) -> None:
    """Note the symbol by which other kernels call a compiled kernel, unless it is small, or local to a function."""
    compiled = kernel.overloads[args]
    if not is_called(compiled):
        return
    function, context = kernel.py_func, compiled.target_context
    _symbols[compiled.fndesc.mangled_name] = Symbol(function.__module__, function.__qualname__, args)
    context.remove_user_function(compiled.entry_point)
    context.insert_user_function(compiled.entry_point, compiled.fndesc)


def is_called(compiled: Any) -> bool:
    """Tell whether other kernels call a compiled kernel, and do not contain it."""
    name = compiled.fndesc.mangled_name
    if name not in _is_called:
        blocks = compiled.library._get_module_for_linking().get_function(name).blocks
        size = sum(1 for block in blocks for _ in block.instructions)
        _is_called[name] = size > _MOST_INLINED and not _is_local(compiled.fndesc.qualname)
    return _is_called[name]


def note_size(compiled: Any, *, is_called: bool) -> None:
    """Note what was found when a kernel was compiled that comes from the cache now."""
    _is_called[compiled.fndesc.mangled_name] = is_called


def symbols_in(compiled: Any) -> tuple[Symbol, ...]:
    """Find the kernels that a compiled kernel calls by their symbols."""
    functions = compiled.library._final_module.functions
    return tuple(_symbols[one.name] for one in functions if one.name in _symbols and one.is_declaration)


def outline(compiled: Any) -> bytes:
    """Return LLVM code that declares what a compiled kernel defines: no other kernel will contain it."""
    names = [one.name for one in compiled.library._final_module.functions if not one.is_declaration]
    code: bytes = parse_assembly("".join(f'define void @"{name}"() {{ ret void }}\n' for name in names)).as_bitcode()
    return code


def _is_local(qualname: str) -> bool:
    return "<locals>" in qualname
