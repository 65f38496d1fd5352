"""Kernel of a ladder as a single file of plain OpenCL C, with headers, macros and conditions resolved."""

from __future__ import annotations

import re
import textwrap

from ..common.arguments import choice
from ..opencl import Device, get_device
from ..opencl.building import expanded_source, source_of
from .declarations import needed
from .folding import folded
from .listing import KERNELS
from .preprocessing import Preprocessor

LINE_MARK = re.compile(r'^#line (\d+) "(.+)"\n?', re.MULTILINE)
FILE_MARK = re.compile(r"^#pragma file (\d+)\n", re.MULTILINE)
LEFT_OVER = re.compile(r"(?:^(?://[^\n]*)?\n)+\Z", re.MULTILINE)  # comments at the end of a file, about removed code
HEAD = re.compile(r"(?://[^\n]*\n)+(?=\s*\n|#|\Z)")


def plain_kernel(name: str, device: Device | str | int | None = None) -> str:
    """Return a kernel of a ladder as a single file, as built for a few atoms in float32.

    name : one of KERNELS, such as "potmap/gather"; device : determines the layout

    Vendor-specific lines are omitted, except PTX on NVIDIA GPUs. Raises InputError for an unknown name, and
    DeviceError.
    """
    choice("name", name, KERNELS)
    listed, chosen = KERNELS[name], get_device(device)
    build = listed.build(chosen)
    source, introductions = _marked(build.file)
    text = needed(folded(Preprocessor.with_values(build.macros).resolve(source)), None)
    about, text = introductions[0], _introduced(text, introductions)
    case = ", ".join(f"{macro} {value}" for macro, value in sorted(build.macros.items()))
    made = f"Generated from cl/{build.file} by `pele-ocl kernel {name} --plain`, for {build.precision}: {case}."
    return _tidied(f"{about}//\n{_wrapped(made)}\n{text}")


def _marked(file: str) -> tuple[str, list[str]]:
    """Return a source with marks between its files, and the introductory comment of each file."""
    files, introductions, marked = list[str](), list[str](), ""
    expanded = expanded_source(file, source_of)
    _, *pieces = LINE_MARK.split(expanded if expanded.startswith("#line") else f'#line 1 "{file}"\n{expanded}')
    for number, name, text in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        head = HEAD.match(text) if number == "1" else None
        about = head[0] if head else ""
        if name not in files:
            files.append(name)
            introductions.append("" if name.startswith("common/") else about)  # omit introductions of common headers
        marked += f"#pragma file {files.index(name)}\n{text[len(about) :]}"
    return marked, introductions


def _introduced(text: str, introductions: list[str]) -> str:
    """Replace the marks by the introductions, each before the first remaining declaration of its file."""
    first, *pieces = FILE_MARK.split(text)
    told = {"0"}  # the main file, whose introduction comes first
    for number, piece in zip(pieces[::2], pieces[1::2], strict=True):
        if piece.strip() and number not in told:
            told.add(number)
            first += f"\n{introductions[int(number)]}\n"
        first += LEFT_OVER.sub("\n", piece)
    return first


def _wrapped(text: str) -> str:
    """Return text as comment lines."""
    return "".join(f"// {line}\n" for line in textwrap.wrap(text, 110))


def _tidied(text: str) -> str:
    """Remove trailing spaces and repeated blank lines."""
    lines = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", lines).strip() + "\n"
