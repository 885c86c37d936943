"""Bundles: named tuples of arrays, which kernels hand on as one pointer.

numba on its own hands a tuple on by value: seven numbers for each array, in each call. With a hundred arrays that is
most of the code of a small kernel, and most of the time that its compilation takes.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.datamodel.registry import register_default
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.core.pythonapi import NativeValue, unbox
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.core.typing.typeof import Purpose, typeof


class Bundle(types.Type):
    """The type of a named tuple that is handed on as a pointer to its fields, which never change."""

    def __init__(self, kind: type, fields: tuple[Any, ...]) -> None:
        self.kind = kind
        self.names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]  # of a named tuple
        self.fields = fields
        super().__init__(name=f"Bundle({kind.__module__}.{kind.__qualname__}, {', '.join(str(f) for f in fields)})")

    #: Its hash, once it was asked for: that of a hundred fields, which numba asks for again and again.
    _hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.key)
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        """Return what is written with compiled code: a hash is of one process."""
        return {**self.__dict__, "_hash": None}

    @property
    def key(self) -> tuple[type, tuple[Any, ...]]:
        """The class of the tuples, and the types of their fields."""
        return self.kind, self.fields

    @property
    def literal_type(self) -> "Bundle":
        """Itself, by which numba sees that a bundle is never None: it leaves out what a kernel does where it is."""
        return self

    @property
    def mangling_args(self) -> tuple[str, tuple[Any, ...]]:
        """Return how a bundle is named in the symbol of a kernel."""
        return self.kind.__name__, self.fields


def bundle_of(value: Any) -> Bundle:
    """Find the type of a named tuple, and of those in it."""
    return Bundle(
        type(value), tuple(bundle_of(field) if is_bundle(field) else typeof(field, Purpose.argument) for field in value)
    )


def is_bundle(value: object) -> bool:
    """Tell whether a value is a named tuple."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


@register_default(Bundle)
class _BundleModel(models.PrimitiveModel):
    """A pointer to the fields, one after the other."""

    def __init__(self, dmm: Any, fe_type: Bundle) -> None:
        fields = [dmm.lookup(field).get_data_type() for field in fe_type.fields]
        super().__init__(dmm, fe_type, ir.LiteralStructType(fields).as_pointer())


@unbox(Bundle)
def _unbox_bundle(typ: Bundle, obj: Any, context: Any) -> NativeValue:
    """Write the fields of a named tuple to the stack of the function by which Python calls a kernel.

    Its types are those by which the kernel was chosen, so they are not checked again.
    """
    pointer = cgutils.alloca_once(context.builder, context.context.get_value_type(typ).pointee)
    adapt_type = ir.FunctionType(ir.IntType(32), [context.pyapi.pyobj, context.pyapi.voidptr])
    adapt = cgutils.get_or_insert_function(context.builder.module, adapt_type, "numba_adapt_ndarray")
    errors, is_error = ir.IntType(32)(0), cgutils.false_bit
    for index, field in enumerate(typ.fields):
        item = context.pyapi.tuple_getitem(obj, index)
        place = cgutils.gep_inbounds(context.builder, pointer, 0, index)
        if isinstance(field, types.Array):
            code = context.builder.call(adapt, (item, context.builder.bitcast(place, context.pyapi.voidptr)))
            errors = context.builder.or_(errors, code)
        else:
            native = context.unbox(field, item)
            context.context.pack_value(context.builder, field, native.value, place)
            is_error = context.builder.or_(is_error, native.is_error)
    return NativeValue(pointer, is_error=context.builder.or_(is_error, cgutils.is_not_null(context.builder, errors)))


@infer_getattr
class _BundleAttribute(AttributeTemplate):
    """The types of the fields."""

    key = Bundle

    def generic_resolve(self, typ: Any, attr: Any) -> Any:  # type: ignore[override]  # numba says: it returns nothing
        """Return the type of a field."""
        return typ.fields[typ.names.index(attr)] if attr in typ.names else None


@lower_getattr_generic(Bundle)
def _load_field(context: Any, builder: Any, typ: Bundle, value: Any, attr: str) -> Any:
    """Load a field, which is the same whenever it is loaded."""
    index = typ.names.index(attr)
    field = typ.fields[index]
    place = cgutils.gep_inbounds(builder, value, 0, index)
    if isinstance(field, types.Array):
        loaded = _load_array(context, builder, field, place)
    else:
        loaded = context.data_model_manager[field].from_data(builder, _load(builder, place))
    return impl_ret_borrowed(context, builder, field, loaded)


def _load_array(context: Any, builder: Any, field: types.Array, place: Any) -> Any:
    """Load the description of an array, part by part: LLVM handles these better than a structure of them."""
    array = context.make_array(field)(context, builder)
    model = context.data_model_manager[field]
    for name in ("meminfo", "parent", "nitems", "itemsize", "data"):
        setattr(array, name, _load(builder, cgutils.gep_inbounds(builder, place, 0, model.get_field_position(name))))
    for name in ("shape", "strides"):
        position = model.get_field_position(name)
        values = [_load(builder, cgutils.gep_inbounds(builder, place, 0, position, k)) for k in range(field.ndim)]
        setattr(array, name, cgutils.pack_array(builder, values))
    return array._getvalue()


def _load(builder: Any, place: Any) -> Any:
    value = builder.load(place)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value
