"""Signatures of kernels, and their arguments by name."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, cast

import numpy as np
import pyopencl as cl

from ..errors import InputError
from .memory import Buffer
from .shared import STRUCTS

# A kernel's argument: a buffer, or a number, vector or struct.
Argument = Buffer | np.generic

# Arguments by the names of a kernel's parameters: buffers, numbers, vectors, structs.
Arguments = Mapping[str, Any]

_NUMBERS = {
    "char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "int": np.int32, "uint": np.uint32,
    "long": np.int64, "ulong": np.uint64, "float": np.float32, "double": np.float64,
}  # fmt: skip


class Memory(Protocol):
    """Array on a device. dtype : of its values, bytes fit every kernel; is_read_only : if kernels may only read it"""

    dtype: np.dtype[Any]
    is_read_only: bool


@dataclass(frozen=True)
class Parameter:
    """Parameter of a kernel as its compiler tells it. type : in C, without qualifiers and star"""

    name: str
    type: str
    is_array: bool
    is_const: bool
    is_restrict: bool


def parameters_of(program: cl.Program, name: str) -> tuple[Parameter, ...]:
    """Ask the runtime for the parameters of a kernel of a program that was built from source."""
    kernel = cl.Kernel(program, name)
    info, has, found = cl.kernel_arg_info, cl.kernel_arg_type_qualifier, []
    for k in range(kernel.num_args):
        own, kind = (str(kernel.get_arg_info(k, of)).strip("\0 ") for of in (info.NAME, info.TYPE_NAME))
        traits = cast(int, kernel.get_arg_info(k, info.TYPE_QUALIFIER))
        is_const, is_restrict = bool(traits & has.CONST), bool(traits & has.RESTRICT)
        own = own.removeprefix("_cl_")  # PoCL renames what OpenCL has functions of, such as step
        found.append(Parameter(own, kind.rstrip("* "), kind.endswith("*"), is_const, is_restrict))
    return tuple(found)


@dataclass(frozen=True)
class Signature:
    """Parameters of a kernel, and NumPy's types of the type names that cl/ defines.

    kernel : its name, for messages
    """

    kernel: str
    parameters: tuple[Parameter, ...]
    types: Mapping[str, np.dtype[Any]]

    def arguments(self, values: Arguments) -> tuple[Argument, ...]:
        """Give arguments in the order of the parameters, numbers in the types that the kernel takes.

        values : arrays on the device, numbers, vectors and structs, by the names of the parameters

        Raises InputError that names what is missing, unknown, of another type, or for reading alone and yet written.
        """
        names = [parameter.name for parameter in self.parameters]
        if values.keys() != set(names):
            missing = [name for name in names if name not in values]
            unknown = [name for name in values if name not in names]
            wrong = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has no {', '.join(unknown)}"] * bool(unknown)
            raise InputError(f"kernel {self.kernel} {' and '.join(wrong)}; it takes {', '.join(names)}")
        return tuple(self._argument(parameter, values[parameter.name]) for parameter in self.parameters)

    def _argument(self, parameter: Parameter, value: object) -> Argument:
        """Check a value against its parameter."""
        if parameter.is_array:
            return self._array(parameter, value)
        where = f"{parameter.name} of kernel {self.kernel} is a {parameter.type}"
        if not isinstance(value, np.generic | np.ndarray | bool | int | float):
            raise InputError(f"{where}, not {'an array' if hasattr(value, 'is_read_only') else repr(value)}")
        kind, is_vector = self._type(parameter)
        if isinstance(value, np.void):
            if kind is not None and value.dtype != kind and not (is_vector and value.dtype[0] == kind):
                raise InputError(f"{where}, not a value of type {value.dtype}")
            return value
        if kind is None or kind.kind == "V" or is_vector:
            raise InputError(f"{where}; give it as a NumPy value")
        try:
            number = operator.index(value) if kind.kind in "iu" else float(value)  # type: ignore[arg-type]
            return cast("np.generic", kind.type(number))
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{where}, not {value!r}") from None

    def _array(self, parameter: Parameter, value: object) -> Argument:
        """Check an array against its parameter."""
        where = f"{parameter.name} of kernel {self.kernel}"
        if not hasattr(value, "is_read_only"):
            raise InputError(f"{where} is an array on the device, not {value!r}")
        array, (kind, _) = cast(Memory, value), self._type(parameter)
        if kind is not None and array.dtype != kind and array.dtype != np.uint8:
            raise InputError(f"{where} is an array of {parameter.type}, not of {array.dtype}")
        if array.is_read_only and not parameter.is_const:
            raise InputError(f"{where} is written, and the array is for reading alone")
        return cast(Buffer, value)

    def _type(self, parameter: Parameter) -> tuple[np.dtype[Any] | None, bool]:
        """Find NumPy's type of a number, of the numbers of a vector, or of a struct; None for a struct of cl/ alone."""
        if parameter.type in self.types:
            return self.types[parameter.type], False
        vector = re.fullmatch(r"(\w+?)(2|3|4|8|16)", parameter.type)
        return (self.types.get(vector[1]), True) if vector else (None, False)


@cache
def types_of(precision: str, fixed_bits: int = 0, doubles: int = 0) -> Mapping[str, np.dtype[Any]]:
    """Give NumPy's types of the type names in kernels, by the macros from which cl/ chooses them.

    fixed_bits : FIXED_BITS of cl/common/position.clh; doubles : DOUBLES of cl/common/total.clh
    """
    real, double = np.dtype(precision), np.dtype(np.float64)
    chosen = {
        "real": real,
        "coordinate": np.dtype(f"int{fixed_bits}") if fixed_bits else double,
        "position": np.dtype(np.int32) if fixed_bits else double,
        "fine": real if fixed_bits else double,
        "total": double if doubles else real,
        "point": np.dtype(np.int32) if precision == "float32" else double,
        "Entry": np.dtype(np.uint32),
    }
    numbers = {name: np.dtype(kind) for name, kind in _NUMBERS.items()}
    return {**numbers, **chosen, **{struct.name: struct.dtype(precision) for struct in STRUCTS.values()}}
