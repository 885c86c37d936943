"""Kernels that are compiled once and then called: the symbols by which compiled kernels find each other.

numba on its own compiles a kernel once more in each kernel that calls it, and in all that call these. Here only small
kernels are, which are faster inside their callers. All others are called by their symbols, which are the same in each
process, so that a kernel and those that it calls may come from the cache or from the compiler.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

from numba.core.compiler import Compiler as NumbaCompiler

__all__ = ["Compiler", "Symbol", "register", "symbols_in"]

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


class Compiler(NumbaCompiler):
    """Names a kernel by the line on which it begins; numba does by a counter, which each process begins anew."""

    def _compile_bytecode(self) -> Any:
        identity = self.state.func_id
        identity.unique_id = identity.firstlineno
        identity.unique_name = f"{identity.func_qualname}${identity.firstlineno}"
        return super()._compile_bytecode()


def register(kernel: Any, args: tuple[Any, ...]) -> None:
    """Let other kernels call a compiled kernel by its symbol, unless it is small, or local to a function."""
    compiled, function = kernel.overloads[args], kernel.py_func
    if "<locals>" in function.__qualname__ or _is_small(compiled):
        return
    _symbols[compiled.fndesc.mangled_name] = Symbol(function.__module__, function.__qualname__, args)
    context = compiled.target_context
    context.remove_user_function(compiled.entry_point)
    context.insert_user_function(compiled.entry_point, compiled.fndesc)


def symbols_in(compiled: Any) -> tuple[Symbol, ...]:
    """Find the kernels that a compiled kernel calls by their symbols."""
    functions = compiled.library._final_module.functions
    return tuple(
        _symbols[function.name] for function in functions if function.name in _symbols and function.is_declaration
    )


def _is_small(compiled: Any) -> bool:
    """Tell whether a compiled kernel is compiled into its callers too."""
    function = compiled.library._get_module_for_linking().get_function(compiled.fndesc.mangled_name)
    instructions = (instruction for block in function.blocks for instruction in block.instructions)
    return all(number < _MOST_INLINED for number, _ in enumerate(instructions))
