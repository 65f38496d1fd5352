"""Arguments of a kernel by name, checked against the kernel's own signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from ..errors import InputError
from .launch import Argument
from .memory import Buffer
from .packing import Parameter

_NUMBERS = {
    "char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "int": np.int32, "uint": np.uint32,
    "long": np.int64, "ulong": np.uint64, "float": np.float32, "double": np.float64,
}  # fmt: skip


def in_order(
    kernel: str,
    parameters: Sequence[Parameter],
    values: Mapping[str, object],
    types: Mapping[str, np.dtype[np.generic]],
) -> tuple[Argument, ...]:
    """Give arguments in the order of a kernel's parameters.

    kernel : its name, for messages
    values : numbers, NumPy scalars and structs, and buffers, by the names of the parameters
    types : NumPy's types of the type names that are the kernel's own, such as real

    Raises InputError that names what is missing, unknown, or of another kind than the kernel takes.
    """
    names = [parameter.name for parameter in parameters]
    missing, unknown = [name for name in names if name not in values], [name for name in values if name not in names]
    if missing or unknown:
        wrong = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has no {', '.join(unknown)}"] * bool(unknown)
        raise InputError(f"kernel {kernel} {' and '.join(wrong)}; it takes {', '.join(names)}")
    return tuple(_argument(kernel, parameter, values[parameter.name], types) for parameter in parameters)


def _argument(
    kernel: str, parameter: Parameter, value: object, types: Mapping[str, np.dtype[np.generic]]
) -> Argument:  # fmt: skip
    """The argument for a parameter, of its type."""
    if parameter.is_array:
        if not isinstance(value, Buffer):
            raise InputError(f"{parameter.name} of kernel {kernel} is an array on the device, not {value!r}")
        return value
    if isinstance(value, Buffer):
        raise InputError(f"{parameter.name} of kernel {kernel} is a {parameter.type}, not an array")
    if isinstance(value, np.void):
        return value
    kind = types.get(parameter.type, _NUMBERS.get(parameter.type))
    if kind is None:
        raise InputError(f"{parameter.name} of kernel {kernel} is a {parameter.type}; give it as a NumPy value")
    try:
        return cast("np.generic", np.dtype(kind).type(value))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{parameter.name} of kernel {kernel} is a {parameter.type}, not {value!r}") from None
