"""Source of kernels that take many sets of arguments in one launch, made from the source of plain ones.

A packed kernel has the statements of the plain one. Its third dimension counts structures, each with a row of a table,
by a list of rows. A row holds the plain kernel's arguments for one structure. Numbers and structs are as they are; an
array is the byte at which it begins in one large buffer. So a group does what it would do for that structure alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .signature import Parameter

# A molecule is the first conformation, and the only one, of its own arrays. Sizes of the launch are no name that
# compiles: they are not the molecule's own.
_PROLOGUE = """size_t row_of_table(void) { return get_global_id(2); }
#define get_global_id(dimension) ((dimension) == 2 ? (size_t)0 : get_global_id(dimension))
#define get_num_groups(dimension) sizes_of_a_shared_launch_are_those_of_its_largest_molecule
#define get_global_size(dimension) sizes_of_a_shared_launch_are_those_of_its_largest_molecule
"""


def packed_source(source: str, name: str, parameters: Sequence[Parameter]) -> str:
    """Pack kernel `name` of a source: it takes table, row bytes, list of rows, and the large buffer per array."""
    start, brace = _signature(source, name)
    arrays = [f"{_array_type(of)}{'restrict ' * of.is_restrict}{of.name}" for of in parameters if of.is_array]
    first = (
        "    global const uchar *argument = table + (size_t)rows[row_of_table()] * row_bytes + first_byte;\n"
        "    global const int *n_groups = (global const int *)argument;\n"
        "    if ((int)get_group_id(0) >= n_groups[0] || (int)get_group_id(1) >= n_groups[1]) return;\n"
        "    argument += sizeof(real4);\n"
    )
    table = "global const uchar *restrict table, const int row_bytes, const int first_byte"
    table += ", global const int *restrict rows"
    packed = f"void {name}({', '.join([table, *arrays])}) {{\n{first}"
    return _PROLOGUE + source[:start] + packed + "".join(map(_taken, parameters)) + source[brace + 1 :]


def signature_source(source: str, name: str) -> str:
    """Cut a source after the signature of kernel `name`, which has no statements then."""
    return source[: _signature(source, name)[1] + 1] + "}\n"


def _array_type(of: Parameter) -> str:
    """Type of a pointer to an array."""
    return f"global {'const ' if of.is_const else ''}{of.type} *"


def _taken(of: Parameter) -> str:
    """Make the statements that take the argument out of the row at `argument`, and go on to the next one."""
    if not of.is_array:
        return (
            f"    const {of.type} {of.name} = *(global const {of.type} *)argument;\n"
            f"    argument += (sizeof({of.type}) + sizeof(real4) - 1) / sizeof(real4) * sizeof(real4);\n"
        )
    bytes_at = f"(global {'const ' if of.is_const else ''}uchar *){of.name}"
    return (
        f"    {of.name} = ({_array_type(of)})({bytes_at} + *(global const ulong *)argument);\n"
        "    argument += sizeof(real4);\n"
    )


def _signature(source: str, name: str) -> tuple[int, int]:
    """Find where kernel `name` begins, after its attributes, and where its statements begin."""
    found = re.search(rf"\bvoid\s+{name}\s*\(", source)
    assert found is not None, f"no kernel {name}"
    return found.start(), source.index("{", found.end())
