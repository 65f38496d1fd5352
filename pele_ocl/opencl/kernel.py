"""Kernels of built programs: their parameters, their arguments by name, and the OpenCL objects that launch them."""

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

# A kernel's argument: a buffer, or a number, vector or struct.
Argument = Buffer | np.generic

# Arguments by the names of a kernel's parameters: buffers, numbers, vectors, structs.
Arguments = Mapping[str, Any]

_NUMBERS = {
    "char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "int": np.int32, "uint": np.uint32,
    "long": np.int64, "ulong": np.uint64, "float": np.float32, "double": np.float64,
}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """Parameter of a kernel. type : in C, without qualifiers and star; is_const : of an array that is only read"""

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
        traits: Any = kernel.get_arg_info(k, info.TYPE_QUALIFIER)
        is_const, is_restrict = bool(traits & has.CONST), bool(traits & has.RESTRICT)
        kind = kind.replace("unsigned ", "u")
        own = own.removeprefix("_cl_")  # PoCL renames what OpenCL has functions of, such as step
        found.append(Parameter(own, kind.rstrip("* "), kind.endswith("*"), is_const, is_restrict))
    return tuple(found)


@dataclass(frozen=True)
class ParameterType:
    """Place of an argument: a parameter with NumPy's type of its numbers.

    kind : of a number, a vector's numbers, or a struct; None for what cl/ alone knows
    """

    kernel: str
    parameter: Parameter
    kind: np.dtype[Any] | None
    is_vector: bool

    @classmethod
    def of(cls, kernel: str, parameter: Parameter, types: Mapping[str, np.dtype[Any]]) -> ParameterType:
        """Find the type of a parameter. types : by the names that kernels have for them"""
        if parameter.type in types:
            return cls(kernel, parameter, types[parameter.type], False)
        vector = re.fullmatch(r"(\w+?)(2|3|4|8|16)", parameter.type)
        return cls(kernel, parameter, types.get(vector[1]) if vector else None, vector is not None)

    @property
    def argument_type(self) -> np.dtype[Any] | None:
        """Type of the argument as in Signature.argument_types."""
        if self.parameter.is_array or self.kind is None:
            return None
        return np.dtype(np.void) if self.is_vector or self.kind.kind == "V" else self.kind

    def array(self, value: Any) -> Argument:
        """Check an array; bytes fit every type. Raises InputError."""
        try:
            fits = self.kind is None or value.dtype == self.kind or value.dtype == np.uint8
            if fits and (self.parameter.is_const or not value.is_read_only):
                array: Buffer = value
                return array
        except AttributeError:
            pass
        raise InputError(self._complaint(value))

    def number(self, value: Any) -> Argument:
        """Check a vector or a struct, or make a number one of the kernel's type. Raises InputError."""
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
        """Say why a value does not fit."""
        of, is_array = self.parameter, hasattr(value, "is_read_only")
        where = f"{of.name} of kernel {self.kernel}"
        if not of.is_array:
            given = "an array" if is_array else f"of type {value.dtype}" if isinstance(value, np.void) else repr(value)
            return f"{where} is a {of.type}, not {given}"
        if not is_array:
            return f"{where} is an array on the device, not {value!r}"
        if self.kind is not None and value.dtype != self.kind and value.dtype != np.uint8:
            return f"{where} is an array of {of.type}, not of {value.dtype}"
        return f"{where} is written, and the array is for reading alone"


class Signature:
    """Parameters of a kernel.

    types : NumPy's types of the type names that cl/ defines
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
        """Types of the arguments as PyOpenCL's `set_arg_types` takes them: None for arrays and for unknown types."""
        return tuple(place.argument_type for place in self.places)

    def arguments(self, values: Arguments) -> tuple[Argument, ...]:
        """Return arguments in the order of the parameters, numbers in the types that the kernel takes.

        values : arrays on the device, numbers, vectors and structs, by the names of the parameters

        Raises InputError for arguments that are missing, unknown, of another type, or read-only but written to.
        """
        if values.keys() != self._names:
            names = [of.name for of in self.parameters]
            missing = [name for name in names if name not in values]
            unknown = [name for name in values if name not in names]
            wrong = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has no {', '.join(unknown)}"] * bool(unknown)
            raise InputError(f"kernel {self.kernel} {' and '.join(wrong)}; it takes {', '.join(names)}")
        return tuple([check(values[name]) for name, check in self._checks])


@cache
def types_of(precision: str, fixed_bits: int = 0, doubles: int = 0) -> Mapping[str, np.dtype[Any]]:
    """Return NumPy's types of the type names in kernels, by the macros from which cl/ chooses them.

    fixed_bits : FIXED_BITS of cl/common/position.clh
    doubles : DOUBLES of cl/common/total.clh and of cl/potmap/sort.clh
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
    """Kernels built for a device, with their signatures.

    signatures : by kernel; None if the runtime tells them, because the program was built from source
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
    """A kernel of a built program, with the OpenCL kernel objects to launch it.

    An object carries the arguments set last, so each has one user at a time. Who launches borrows one, sets all
    arguments, enqueues, and gives it back. Objects are kept, because making one costs more than a launch. Threads may
    use a Kernel at the same time, and finalizers may give objects back.

    PyOpenCL takes 12 us to find out that an argument is a number, unless an object knows the types of its arguments.
    To tell them takes as long as to set them once, so only objects that are borrowed for each launch know them.

    handle : of the device; vendor : of its compiler, `Device.vendor`
    signature : what it takes; of one that serves rows, what it takes for a structure alone
    launched : if it has run on the device
    """

    def __init__(
        self, program: cl.Program, name: str, handle: cl.Device, vendor: str, signature: Signature
    ) -> None:  # fmt: skip
        self.name, self.signature, self.launched = name, signature, False
        self._program, self._handle, self._vendor = program, handle, vendor
        self._free, self._typed = deque([cl.Kernel(program, name)]), deque[cl.Kernel]()

    def borrow(self) -> cl.Kernel:
        """A kernel object that nobody else uses, which knows the types of its arguments."""
        try:
            return self._typed.pop()
        except IndexError:
            kernel_object = self._taken()
            kernel_object.set_arg_types(self.signature.argument_types)
            return kernel_object

    def give_back(self, kernel_object: cl.Kernel) -> None:
        """Give back a borrowed kernel object for reuse."""
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
        """Ask the runtime about the kernel on the device."""
        kernel_object = self._taken()
        found = kernel_object.get_work_group_info(what, self._handle)
        self._free.append(kernel_object)
        return found

    @cached_property
    def own_group(self) -> tuple[int, ...] | None:
        """Work-items of a group along each axis, as `reqd_work_group_size` in the source says; None without it."""
        asked: tuple[int, ...] = tuple(self._information(cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE))
        return asked if any(asked) else None

    @cached_property
    def most_items(self) -> int:
        """Work-items that a group of this kernel may have on the device."""
        info = cl.kernel_work_group_info
        own, limit = (self._information(what) for what in (info.COMPILE_WORK_GROUP_SIZE, info.WORK_GROUP_SIZE))
        # On NVIDIA the source's own size holds; the limit is 256 there, whatever that is.
        return int(own[0]) if own[0] and self._vendor == "NVIDIA" else max(1, int(limit))
