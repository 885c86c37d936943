"""What the kernels use of numba behind its documented interface: the installed one has it and takes what it is given.

numba promises none of it. `scripts/check --lowest` and `--newest` run these tests with the oldest numba that
``pyproject.toml`` allows and with the newest one. A name that the code begins to use is added to the tables.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from numba.core.registry import CPUDispatcher

ROOT = Path(__file__).parents[2]

#: The parameters that are passed, or that a method of ours receives in its place; None of what is not called.
USED: dict[str, str | None] = {
    "llvmlite.binding.parse_assembly": "llvmir",
    "llvmlite.ir.FunctionType": None,
    "llvmlite.ir.LiteralStructType": None,
    "numba.core.base.BaseContext.insert_user_function": "self func fndesc",
    "numba.core.base.BaseContext.remove_user_function": "self func",
    "numba.core.caching.CompileResultCacheImpl._locator_classes": None,
    "numba.core.caching.CompileResultCacheImpl.filename_base": None,
    "numba.core.caching.CompileResultCacheImpl.rebuild": "self target_context payload",
    "numba.core.caching.CompileResultCacheImpl.reduce": "self cres",
    "numba.core.caching.FunctionCache": "py_func",
    "numba.core.caching.FunctionCache._impl_class": None,
    "numba.core.caching.FunctionCache._load_overload": "self sig target_context",
    "numba.core.caching.FunctionCache.cache_path": None,
    "numba.core.caching.FunctionCache.load_overload": "self sig target_context",
    "numba.core.caching.FunctionCache.save_overload": "self sig data",
    "numba.core.caching._CacheLocator.ensure_cache_path": "self",
    "numba.core.caching._CacheLocator.from_function": "py_func py_file",
    "numba.core.caching._CacheLocator.get_cache_path": "self",
    "numba.core.caching._CacheLocator.get_disambiguator": "self",
    "numba.core.caching._CacheLocator.get_source_stamp": "self",
    "numba.core.cgutils.alloca_once": "builder ty",
    "numba.core.cgutils.false_bit": None,
    "numba.core.cgutils.get_or_insert_function": "module fnty name",
    "numba.core.compiler.Compiler._compile_bytecode": "self",
    "numba.core.compiler_lock.global_compiler_lock": None,
    "numba.core.config.DISABLE_JIT": None,
    "numba.core.datamodel.models.PrimitiveModel": "dmm fe_type be_type",
    "numba.core.datamodel.registry.register_default": "typecls",
    "numba.core.dispatcher.Dispatcher.compile": "self sig",
    "numba.core.imputils.impl_ret_borrowed": "ctx builder retty ret",
    "numba.core.imputils.lower_getattr_generic": "ty",
    "numba.core.pythonapi.NativeValue": "value is_error",
    "numba.core.pythonapi.unbox": "typeclass",
    "numba.core.registry.CPUDispatcher": "py_func targetoptions pipeline_class",
    "numba.core.registry.CPUDispatcher._compile_for_args": "self args kws",
    "numba.core.registry.CPUDispatcher.add_overload": "self cres",
    "numba.core.registry.CPUDispatcher.enable_caching": "self",
    "numba.core.registry.CPUDispatcher.get_call_template": "self args kws",
    "numba.core.registry.CPUDispatcher.typeof_pyval": "self val",
    "numba.core.runtime.nrt.rtsys.initialize": "ctx",
    "numba.core.sigutils.normalize_signature": "sig",
    "numba.core.types.Type.__init__": "self name",
    "numba.core.types.unliteral": "lit_type",
    "numba.core.typing.templates.AttributeTemplate.generic_resolve": None,
    "numba.core.typing.templates.infer_getattr": None,
    "numba.core.typing.typeof.Purpose.argument": None,
    "numba.core.typing.typeof.typeof": "val purpose",
}

#: The attributes that only objects have: of a dispatcher, and of what it has compiled.
OF_DISPATCHER = ("_cache", "_numba_type_", "overloads", "py_func", "signatures")
OF_COMPILED = (
    "entry_point",
    "_replace",
    "fndesc.mangled_name",
    "fndesc.qualname",
    "library._final_module.functions",
    "library._get_module_for_linking",
    "signature.args",
    "target_context",
    "type_annotation",
)


def used_in(path: Path) -> Iterator[str]:
    """Yield the names that a file imports from numba and llvmlite."""
    text = path.read_text(encoding="utf-8")
    if "numba" not in text and "llvmlite" not in text:  # to parse all files takes seconds
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in ("numba", "llvmlite"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.fixture(scope="module")
def dispatcher() -> Any:
    """Compile a function."""
    made = CPUDispatcher(lambda value: value + 1, targetoptions={"nopython": True})
    assert made(1) == 2
    return made


@pytest.mark.parametrize(("name", "parameters"), USED.items())
def test_numba_has_what_is_used(name: str, parameters: str | None) -> None:
    """It exists; its parameters have these names in this order, and all others may be left out."""
    found = resolve_name(name)
    if parameters is not None:
        accepted = inspect.signature(found).parameters
        named = [parameter for parameter in accepted if parameter in parameters.split()]
        left_out = [parameter for parameter in accepted.values() if parameter.name not in named]
        assert named == parameters.split()
        assert all(parameter.default is not parameter.empty for parameter in left_out)


@pytest.mark.parametrize("attribute", OF_DISPATCHER)
def test_a_dispatcher_has_what_is_used(attribute: str, dispatcher: Any) -> None:
    """It is an attribute of each one."""
    attrgetter(attribute)(dispatcher)


@pytest.mark.parametrize("attribute", OF_COMPILED)
def test_compiled_code_has_what_is_used(attribute: str, dispatcher: Any) -> None:
    """It is an attribute of what a dispatcher keeps for each types of arguments."""
    (compiled,) = dispatcher.overloads.values()
    attrgetter(attribute)(compiled)


def test_all_that_is_imported_is_in_the_table() -> None:
    """Whatever the package and the tests' workers import from numba's modules is checked above."""
    files = [*ROOT.glob("cpsched/**/*.py"), ROOT / "tests" / "sharing.py"]
    imported = {name for path in files for name in used_in(path)}
    assert {"numba.core.registry.CPUDispatcher", "numba.core.sigutils"} <= imported
    assert {name for name in imported if not any(f"{used}.".startswith(f"{name}.") for used in USED)} == set()
