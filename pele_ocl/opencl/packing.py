"""Kernels that take many sets of arguments in one launch: the source of such a kernel, made from that of a plain one.

A packed kernel has the statements of the plain one. Its third dimension counts structures, each with a row of a table,
by a list of rows. A row holds the plain kernel's arguments for one structure: numbers and structs as they are, for an
array the byte at which it begins in one large buffer. So a group does what it would do for that structure alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import pyopencl as cl

ARGUMENT_INFO = "-cl-kernel-arg-info"
HEADER_INTEGERS = 2  # groups of the molecule in the first and the second dimension

# A molecule is the first conformation, and the only one, of its own arrays.
_PROLOGUE = """size_t row_of_table(void) { return get_global_id(2); }
#define get_global_id(dimension) ((dimension) == 2 ? (size_t)0 : get_global_id(dimension))
"""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel as its compiler tells it. type : in C, without qualifiers and star"""

    name: str
    type: str
    is_array: bool
    is_const: bool
    is_restrict: bool

    @property
    def array_type(self) -> str:
        """The type of a pointer to the array."""
        return f"global {'const ' if self.is_const else ''}{self.type} *"

    def taken(self) -> str:
        """The statements that take the argument out of the row at `argument`, and go on to the next one."""
        if not self.is_array:
            return (
                f"    const {self.type} {self.name} = *(global const {self.type} *)argument;\n"
                f"    argument += (sizeof({self.type}) + sizeof(real4) - 1) / sizeof(real4) * sizeof(real4);\n"
            )
        bytes_at = f"(global {'const ' if self.is_const else ''}uchar *){self.name}"
        return (
            f"    {self.name} = ({self.array_type})({bytes_at} + *(global const ulong *)argument);\n"
            "    argument += sizeof(real4);\n"
        )


def packed_source(source: str, name: str, parameters: Sequence[Parameter]) -> str:
    """The source with kernel `name` packed: table, bytes of a row and list of rows, then the large buffer per array."""
    start, brace = _signature(source, name)
    arrays = [f"{of.array_type}{'restrict ' * of.is_restrict}{of.name}" for of in parameters if of.is_array]
    first = (
        "    global const uchar *argument = table + (size_t)rows[row_of_table()] * row_bytes + first_byte;\n"
        "    global const int *n_groups = (global const int *)argument;\n"
        "    if ((int)get_group_id(0) >= n_groups[0] || (int)get_group_id(1) >= n_groups[1]) return;\n"
        "    argument += sizeof(real4);\n"
    )
    table = "global const uchar *restrict table, const int row_bytes, const int first_byte"
    table += ", global const int *restrict rows"
    packed = f"void {name}({', '.join([table, *arrays])}) {{\n{first}"
    return _PROLOGUE + source[:start] + packed + "".join(of.taken() for of in parameters) + source[brace + 1 :]


def signature_source(source: str, name: str) -> str:
    """The source up to the signature of kernel `name`, which has no statements there."""
    return source[: _signature(source, name)[1] + 1] + "}\n"


def parameters_of(program: cl.Program, name: str) -> list[Parameter]:
    """The parameters of a kernel that was built with ARGUMENT_INFO."""
    kernel = cl.Kernel(program, name)
    info, has, found = cl.kernel_arg_info, cl.kernel_arg_type_qualifier, []
    for k in range(kernel.num_args):
        own, kind = (str(kernel.get_arg_info(k, of)).strip("\0 ") for of in (info.NAME, info.TYPE_NAME))
        traits = cast(int, kernel.get_arg_info(k, info.TYPE_QUALIFIER))
        is_const, is_restrict = bool(traits & has.CONST), bool(traits & has.RESTRICT)
        own = own.removeprefix("_cl_")  # PoCL renames what OpenCL has functions of, such as step
        found.append(Parameter(own, kind.rstrip("* "), kind.endswith("*"), is_const, is_restrict))
    return found


def _signature(source: str, name: str) -> tuple[int, int]:
    """Where kernel `name` begins, behind its attributes, and where its statements do."""
    found = re.search(rf"\bvoid\s+{name}\s*\(", source)
    assert found is not None, f"no kernel {name}"
    return found.start(), source.index("{", found.end())
