"""Kernels of built programs, their parameters, and the OpenCL kernel objects to launch them."""

from __future__ import annotations

import operator
import re
import weakref
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyopencl as cl

from ..common.errors import InputError
from .interface import STRUCTS
from .memory import Buffer

# Kernel argument: a buffer, number, vector or struct.
Argument = Buffer | np.generic

# Kernel arguments by parameter name.
Arguments = Mapping[str, Any]

_NUMBERS = {
    "char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "int": np.int32, "uint": np.uint32,
    "long": np.int64, "ulong": np.uint64, "float": np.float32, "double": np.float64,
}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """Parameter of a kernel. type : C type without qualifiers and asterisk; is_const : whether an array is read-only"""

    name: str
    type: str
    is_array: bool
    is_const: bool
    is_restrict: bool


def parameters_of(program: cl.Program, name: str) -> tuple[Parameter, ...]:
    """Query the parameters of a kernel from the runtime; the program must have been built from source."""
    kernel = cl.Kernel(program, name)
    info, has, found = cl.kernel_arg_info, cl.kernel_arg_type_qualifier, []
    for k in range(kernel.num_args):
        own, kind = (str(kernel.get_arg_info(k, of)).strip("\0 ") for of in (info.NAME, info.TYPE_NAME))
        traits: Any = kernel.get_arg_info(k, info.TYPE_QUALIFIER)
        is_const, is_restrict = bool(traits & has.CONST), bool(traits & has.RESTRICT)
        kind = kind.replace("unsigned ", "u")
        own = own.removeprefix("_cl_")  # PoCL renames parameters named like OpenCL functions, such as step
        found.append(Parameter(own, kind.rstrip("* "), kind.endswith("*"), is_const, is_restrict))
    return tuple(found)


@dataclass(frozen=True)
class ParameterType:
    """Parameter of a kernel with its NumPy type.

    kind : type of a number, a vector's elements, or a struct; None for types defined only in cl/
    """

    kernel: str
    parameter: Parameter
    kind: np.dtype[Any] | None
    is_vector: bool

    @classmethod
    def of(cls, kernel: str, parameter: Parameter, types: Mapping[str, np.dtype[Any]]) -> ParameterType:
        """Determine the type of a parameter. types : by their names in kernels"""
        if parameter.type in types:
            return cls(kernel, parameter, types[parameter.type], False)
        vector = re.fullmatch(r"(\w+?)(2|3|4|8|16)", parameter.type)
        return cls(kernel, parameter, types.get(vector[1]) if vector else None, vector is not None)

    @property
    def argument_type(self) -> np.dtype[Any] | None:
        """Type of the argument for Signature.argument_types."""
        if self.parameter.is_array or self.kind is None:
            return None
        return np.dtype(np.void) if self.is_vector or self.kind.kind == "V" else self.kind

    def array(self, value: Any) -> Argument:
        """Return an array if its type matches; byte arrays match every type. Raises InputError otherwise."""
        try:
            fits = self.kind is None or value.dtype == self.kind or value.dtype == np.uint8
            if fits and (self.parameter.is_const or not value.is_read_only):
                array: Buffer = value
                return array
        except AttributeError:
            pass
        raise InputError(self._complaint(value))

    def number(self, value: Any) -> Argument:
        """Check a vector or struct, or convert a number to the kernel's type. Raises InputError on a mismatch."""
        kind = self.kind
        if isinstance(value, np.void):
            if kind is None or value.dtype == kind or (self.is_vector and value.dtype[0] == kind):
                return value
        elif kind is None:
            if isinstance(value, np.generic):
                return value
        elif kind.kind != "V" and not self.is_vector and not isinstance(value, str):
            try:
                number: np.generic = kind.type(operator.index(value) if kind.kind in "iu" else float(value))
                return number
            except (TypeError, ValueError, OverflowError):
                pass
        raise InputError(self._complaint(value))

    def _complaint(self, value: Any) -> str:
        """Return the error message for a value of the wrong type."""
        of, is_array = self.parameter, hasattr(value, "is_read_only")
        where = f"{of.name} of kernel {self.kernel}"
        if not of.is_array:
            given = "an array" if is_array else f"of type {value.dtype}" if isinstance(value, np.void) else repr(value)
            return f"{where} is a {of.type}, not {given}"
        if not is_array:
            return f"{where} is an array on the device, not {value!r}"
        if self.kind is not None and value.dtype != self.kind and value.dtype != np.uint8:
            return f"{where} is an array of {of.type}, not of {value.dtype}"
        return f"{where} is written, but the array is read-only"


class Signature:
    """Parameters of a kernel.

    types : NumPy types by C type name
    """

    def __init__(self, kernel: str, parameters: tuple[Parameter, ...], types: Mapping[str, np.dtype[Any]]) -> None:
        self.kernel, self.parameters = kernel, parameters
        self.places = [ParameterType.of(kernel, parameter, types) for parameter in parameters]
        self._names = {of.name for of in parameters}
        self._checks = [
            (of.parameter.name, of.array if of.parameter.is_array else of.number) for of in self.places
        ]  # fmt: skip

    @property
    def argument_types(self) -> tuple[np.dtype[Any] | None, ...]:
        """Argument types for PyOpenCL's `set_arg_types`; None for arrays and unknown types."""
        return tuple(place.argument_type for place in self.places)

    def arguments(self, values: Arguments) -> tuple[Argument, ...]:
        """Return the arguments in parameter order, with numbers converted to the kernel's types.

        values : arrays on the device, numbers, vectors and structs, by parameter name

        Raises InputError for missing or unknown arguments, wrong types, or read-only arrays that the kernel writes to.
        """
        if values.keys() != self._names:
            names = [of.name for of in self.parameters]
            missing = [name for name in names if name not in values]
            unknown = [name for name in values if name not in names]
            wrong = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has no {', '.join(unknown)}"] * bool(unknown)
            raise InputError(f"kernel {self.kernel} {' and '.join(wrong)}; its arguments are {', '.join(names)}")
        return tuple([check(values[name]) for name, check in self._checks])


@cache
def types_of(precision: str, fixed_bits: int = 0, doubles: int = 0) -> Mapping[str, np.dtype[Any]]:
    """Return the NumPy types of C type names in kernels; some depend on macros.

    fixed_bits : FIXED_BITS of cl/common/position.clh
    doubles : DOUBLES of cl/common/total.clh and cl/potmap/sort.clh
    """
    real, double = np.dtype(precision), np.dtype(np.float64)
    chosen = {
        "real": real,
        "coordinate": np.dtype(f"int{fixed_bits}") if fixed_bits else double,
        "position": np.dtype(np.int32) if fixed_bits else double,
        "fine": real if fixed_bits else double,
        "total": double if doubles else real,
        "place": double if doubles else real,
        "point": np.dtype(np.int32) if precision == "float32" else double,
        "Entry": np.dtype(np.uint32),
    }
    numbers = {name: np.dtype(kind) for name, kind in _NUMBERS.items()}
    return {**numbers, **chosen, **{struct.name: struct.dtype(precision) for struct in STRUCTS.values()}}


@dataclass(frozen=True)
class Program:
    """Program built for a device.

    signatures : parameters by kernel; None to query them from the runtime, for programs built from source
    """

    handle: cl.Program
    signatures: Mapping[str, tuple[Parameter, ...]] | None = None

    def signature(self, name: str) -> tuple[Parameter, ...]:
        """Return the parameters of a kernel."""
        return parameters_of(self.handle, name) if self.signatures is None else self.signatures[name]

    @property
    def names(self) -> list[str]:
        """Names of the kernels."""
        if self.signatures is not None:
            return list(self.signatures)
        names: Any = self.handle.get_info(cl.program_info.KERNEL_NAMES)
        return [name for name in names.strip("\0").split(";") if name]

    def all_signatures(self) -> dict[str, tuple[Parameter, ...]]:
        """Return the parameters of every kernel."""
        return {name: self.signature(name) for name in self.names}


class Kernel:
    """A kernel of a built program, with OpenCL kernel objects to launch it.

    A kernel object stores the arguments that were set last, so it must not be shared. Callers borrow one, set all
    arguments, enqueue it, and return it. Objects are reused, because creating one takes longer than a launch. Threads
    may use a Kernel concurrently, and finalizers may return objects.

    PyOpenCL needs 12 us to detect that an argument is a number, unless the argument types of the object are set.
    Setting the types takes as long as setting the arguments once, so it is done only for objects that are borrowed per
    launch.

    handle : the device; vendor : `Device.vendor`
    signature : parameters as declared in the file, also for kernels built for rows
    launched : whether the kernel has run on the device
    """

    def __init__(
        self, program: cl.Program, name: str, handle: cl.Device, vendor: str, signature: Signature
    ) -> None:  # fmt: skip
        self.name, self.signature, self.launched = name, signature, False
        self._program, self._handle, self._vendor = program, handle, vendor
        self._free, self._typed = deque([cl.Kernel(program, name)]), deque[cl.Kernel]()

    def borrow(self) -> cl.Kernel:
        """Return an unused kernel object with its argument types set."""
        try:
            return self._typed.pop()
        except IndexError:
            kernel_object = self._taken()
            kernel_object.set_arg_types(self.signature.argument_types)
            return kernel_object

    def give_back(self, kernel_object: cl.Kernel) -> None:
        """Return a borrowed kernel object for reuse."""
        self._typed.append(kernel_object)

    def lend(self, owner: object) -> cl.Kernel:
        """Return a kernel object that is reused after `owner` is deleted."""
        kernel_object = self._taken()
        weakref.finalize(owner, self._free.append, kernel_object).atexit = False
        return kernel_object

    def _taken(self) -> cl.Kernel:
        try:
            return self._free.pop()
        except IndexError:
            return cl.Kernel(self._program, self.name)

    def _information(self, what: cl.kernel_work_group_info) -> Any:
        """Query a property of the kernel on the device."""
        kernel_object = self._taken()
        found = kernel_object.get_work_group_info(what, self._handle)
        self._free.append(kernel_object)
        return found

    @cached_property
    def own_group(self) -> tuple[int, ...] | None:
        """Work-group size set by `reqd_work_group_size` in the source; None if it is not set."""
        asked: tuple[int, ...] = tuple(self._information(cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE))
        return asked if any(asked) else None

    @cached_property
    def most_items(self) -> int:
        """Maximum work-group size of this kernel on the device."""
        info = cl.kernel_work_group_info
        own, limit = (self._information(what) for what in (info.COMPILE_WORK_GROUP_SIZE, info.WORK_GROUP_SIZE))
        # NVIDIA supports the size set in the source, but always reports a limit of 256.
        return int(own[0]) if own[0] and self._vendor == "NVIDIA" else max(1, int(limit))
