"""A kernel of a ladder as one file in plain OpenCL C: headers in place, macros and conditions resolved."""

from __future__ import annotations

import re
import textwrap

from ..arguments import choice
from ..opencl import Device, get_device
from ..opencl.building import expanded_source, source_of
from .declarations import needed
from .listing import KERNELS
from .preprocessing import Preprocessor

LINE_MARK = re.compile(r"^#line .*\n?", re.MULTILINE)
HEAD = re.compile(r"(?://[^\n]*\n)+")


def plain_kernel(name: str, device: Device | str | int | None = None) -> str:
    """Give a kernel of a ladder as one file, for the case of a few atoms in float32.

    name : such as "potmap/gather", of KERNELS; device : whose layout it has

    Lines for one vendor's compiler are left out, but for PTX on NVIDIA's GPUs. Raises InputError for an unknown name,
    DeviceError.
    """
    choice("name", name, KERNELS)
    listed, chosen = KERNELS[name], get_device(device)
    build = listed.build(chosen)
    own = HEAD.match(source_of(build.file))
    about = own[0] if own else ""
    source = LINE_MARK.sub("", expanded_source(build.file, source_of))[len(about) :]
    text = needed(Preprocessor.with_values(build.macros).resolve(source), None)
    case = ", ".join(f"{macro} {value}" for macro, value in sorted(build.macros.items()))
    made = f"Made from cl/{build.file} by `pele-ocl kernel {name} --plain`, for {build.precision}: {case}."
    return _tidied(f"{about}//\n{_wrapped(made)}\n{text}")


def _wrapped(text: str) -> str:
    """A text as comment lines."""
    return "".join(f"// {line}\n" for line in textwrap.wrap(text, 110))


def _tidied(text: str) -> str:
    """Take blanks at the ends of lines away, and blank lines after blank lines."""
    lines = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", lines).strip() + "\n"
