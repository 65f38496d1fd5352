"""Kernels that serve rows of an ensemble: their files as they are, behind macros that list their parameters.

cl/engine/arguments.clh has what the macros become.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .signature import Parameter

HEADER = "engine/arguments.clh"
_SERVES = re.compile(r"^(?!\s*(?://|#)).*\bSERVES_ROWS\((\w+)\)", re.MULTILINE)

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)  # of OpenCL C

Signatures = Mapping[str, "tuple[Parameter, ...]"]


def served_kernels(source: str, name: str, signatures: Signatures) -> dict[str, bool]:
    """Name the kernels of a source that serve rows, and whether they say so: `name` may leave that out."""
    return {name: False} | {kernel: True for kernel in _SERVES.findall(source) if kernel in signatures}


def source_of_rows(
    file: str, served: Mapping[str, bool], signatures: Signatures, expanded: Callable[[str], str]
) -> str:  # fmt: skip
    """Put macros before a kernel file, by which kernels of it serve rows.

    served : as of served_kernels; signatures : parameters of its kernels
    expanded : gives a file with its headers in place, each once
    """
    header, source = expanded(HEADER), expanded(file)
    macros = list[str]()
    for name, says_so in served.items():
        names = ", ".join(of.name for of in signatures[name])
        given = ", ".join(f"given{k}" for k in range(_n_given(source, name)))
        function = f"ROW_FUNCTION({name}, PARAMETERS_OF_{name}, ({names}), ({given}))"
        macros += [
            _listed(name, signatures[name]),
            f"#define {name}({given}) {f'ROW_KERNEL({name})' if says_so else function}",
        ]
    return "\n".join([*macros, header, source])


def _n_given(source: str, kernel: str) -> int:
    """Count what a kernel's declaration has between commas, as a macro of its name takes it.

    NVIDIA's compiler refuses macros of any number of arguments.
    """
    text = COMMENT.sub(" ", source)
    declared = re.search(rf"\bvoid\s+{kernel}\s*\(", text)
    assert declared is not None, f"no kernel {kernel}"
    depth, n = 1, 1
    for character in text[declared.end() :]:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if not depth:
            break
        n += character == "," and depth == 1
    return n


def _listed(kernel: str, parameters: tuple[Parameter, ...]) -> str:
    """List a kernel's parameters in a macro."""
    each = (
        f"ARRAY({'const ' * of.is_const}{of.type}, *{'restrict' * of.is_restrict}, {of.name})"
        if of.is_array
        else f"NUMBER({of.type}, {of.name})"
        for of in parameters
    )
    return f"#define PARAMETERS_OF_{kernel}(NUMBER, ARRAY) {' '.join(each)}"
