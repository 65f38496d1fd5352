"""Compilation of user-written kernels, with readable compiler messages and a check of the arguments."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike

from ..common.errors import FormatError, KernelBuildError
from ..common.inputfile import read_file
from ..opencl import Device, Queue
from ..opencl.building import get_program, is_header, named_source
from ..opencl.kernel import Parameter
from .findings import Finding
from .quantities import Given, Quantity

# clang: `file:7:5: error: ...`; PoCL: `error: file:7:5: ...`.
MESSAGE = re.compile(r"(?:error: [\w.-]*|[\w.<>-]*):(\d+):(\d+): (?!warning|note)(?:fatal )?(?:error: )?(.*)")
TRIGRAPHS = {"=": "#", "/": "\\", "'": "^", "(": "[", ")": "]", "!": "|", "<": "{", ">": "}", "-": "~"}
TRIGRAPH = re.compile(r"\?\?([=/'()!<>-])")
SPLICE = re.compile(r"\\[^\S\n]*\n")  # clang also accepts spaces before the end of the line
# C tokens that may contain other tokens: comments, strings and characters; the latter two end at the line end.
TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))|(?P<text>"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z)|'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z))""",
    re.DOTALL,
)
INCLUDE = re.compile(r"(?:#|%:)[^\w\n]*(?:include(?:_next)?|__include_macros|import|embed)\b")
DIRECTIVE = re.compile(r"\W*(?:#|%:)")
HEADER = re.compile(r'\s*"([\w./-]+)"\s*')
ASSEMBLY = re.compile(r"\b(?:asm|__asm|__asm__)\b")
MOST_MESSAGES = 5  # later messages are mostly consequences of the first ones

# Compiler messages -> readable messages.
PLAIN = [
    (r"use of undeclared identifier '(_{3,})'", "the blank `{0}` has not been filled"),
    (r"use of undeclared identifier '(\w+)'", "`{0}` is used, but no such variable was declared; is it misspelt?"),
    (r"expected ';'.*", "a semicolon is missing here, or at the end of the line before"),
    (r"expected '\)'", "a closing parenthesis is missing"),
    (r"expected '}'", "a closing brace is missing: some {{ has no }}"),
    (r"extraneous closing brace.*", "there is one closing brace too many"),
    (r"unknown type name '(\w+)'", "`{0}` is not a type; OpenCL C has int, float, float4, double and similar types"),
    (r"implicit declaration of function '(\w+)'.*", "unknown function `{0}`; is it misspelt?"),
    (r"no matching function for call to '(\w+)'", "`{0}` takes other types of arguments, or another number of them"),
    (r"call to '(\w+)' is ambiguous", "`{0}` is defined for several types; write a cast, such as (float)x"),
    (r"redefinition of '(\w+)'", "`{0}` is declared twice"),
    (r"cannot assign to variable '(\w+)' with const.*", "`{0}` is const: it can be read, but not changed"),
    (r"read-only variable is not assignable", "this is const: it can be read, but not changed"),
    (r"too (few|many) arguments to function call.*", "too {0} arguments in this call"),
    (r"no member named '(\w+)' in.*", "unknown member `{0}`; a float4 has .x, .y, .z and .w"),
    (r"member reference base type '([^']+)'.*", "a {0} has no members such as .x"),
    (r"subscripted value is not an array, pointer, or vector",
     "only arrays have elements in brackets [ ]; an array that a kernel takes has one index, not one for each axis"),
    (r"scalar operand type has greater rank than the type of the vector element\. \('double' and 'float.*",
     "a double is combined with a float vector: float constants end in f, such as 1.0f"),
    (r"scalar operand type has greater rank than the type of the vector element\. \('([^']+)' and '([^']+)'.*",
     "a {0} is combined with a vector of another type, {1}: declare both with one type"),
    (r"implicit conversions between vector types \('([^']+)'[^']*'[^']*'[^']*'([^']+)'.*",
     "`{0}` and `{1}` cannot be mixed: declare both with one type, or write convert_{0}(...)"),
    (r"(?:invalid argument type|statement requires expression of scalar type).*",
     "a mask has a truth value in each lane, `if` and `!` want a single one: any(mask) or all(mask)"),
    (r"(?:kernel )?[Pp]ointer (?:arguments|argument).*(?:address space|global).*|.*must be .*global.*constant.*",
     "an array that a kernel takes needs `global` before its type: `global const float *`"),
    (r"initializing '(?:const )?(?:__private )?([^']+)' with an expression of incompatible type '([^']+)'.*",
     "a {1} cannot be assigned to a {0}: declare both with one type"),
    (r"parameter may not be qualified with an address space",
     "only arrays are `global`, `constant` or `local`: a pointer, as in `global const float *`"),
    (r"kernel must have void return type", "a kernel returns nothing: write `kernel void`"),
    (r"use of type '?\"?double.*|.*cl_khr_fp64.*", "this device has no double; use float"),
    (r"variable.*address space.*must.*kernel.*|.*non-kernel function variable cannot be declared in local.*",
     "`local` arrays are declared at the top of the kernel itself, not in a loop, branch or helper"),
    (r"'([^']+)' file not found", "cannot find the included file {0}; write everything in one file"),
]  # fmt: skip


@dataclass(frozen=True)
class Compiled:
    """A compiled kernel with valid arguments.

    file : name under which the source can be built; group : work-group size required by the source, or None
    """

    file: str
    kernel: str
    parameters: tuple[Parameter, ...]
    precision: str
    group: tuple[int, ...] | None


def read_source(path: str | PathLike[str]) -> str:
    """Read a file of OpenCL C. Bytes that are not valid UTF-8 are replaced by U+FFFD.

    Raises FormatError if the file is missing, unreadable or not text.
    """
    data = read_file(path).data
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", "replace")
    elif b"\0" in data:
        raise FormatError(f"{path}: is not text; give a file of OpenCL C")
    else:
        text = data.decode("utf-8-sig", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def compiled(
    source: str, quantity: Quantity, device: Device, kernel: str | None
) -> tuple[Compiled | None, list[Finding]]:
    """Compile a source and return its kernel, with findings. kernel : its name; None if there is only one"""
    source = plain_source(source)
    if findings := list(files_outside(source)):
        return None, findings
    none = Finding("compile", "the file contains no kernel; a kernel begins with `kernel void name(`")
    if "kernel" not in source:  # comments are removed; NVIDIA's runtime crashes for a program without kernels
        return None, [none]
    file = named_source(source)
    try:
        signatures = get_program(device, file, "float32", 1, False, {}).all_signatures()
    except KernelBuildError as error:
        return None, list(plain_words(str(error)))
    if not signatures:
        return None, [none]
    if kernel is None and len(signatures) == 1:
        (kernel,) = signatures
    if kernel not in signatures:
        names = ", ".join(sorted(signatures))
        which = "the file has several kernels" if kernel is None else f"the file has no kernel `{kernel}`"
        return None, [Finding("signature", f"{which}; choose one with `kernel`: {names}")]
    parameters = signatures[kernel]
    findings = list(_wrong_arguments(source, parameters, quantity))
    if findings:
        return None, findings
    precision = "float64" if any(of.type.startswith("double") for of in parameters) else "float32"
    group = Queue(device, "float32").kernel(file, kernel).own_group
    return Compiled(file, kernel, parameters, precision, group), []


def plain_source(source: str) -> str:
    """Return the source without comments, spliced lines and trigraphs, with the same line numbers.

    The compiler and `files_outside` thus cannot disagree about what is code and what is a comment.
    """
    text = re.sub(r"\r\n?|[\0\f\v]", lambda found: "\n" if found[0][0] == "\r" else " ", source)
    text = TRIGRAPH.sub(lambda found: TRIGRAPHS[found[1]], text)
    # Add the removed line ends after the joined line, to preserve line numbers.
    joined, owed = [], 0
    for part in SPLICE.split(text):
        line, end, rest = part.partition("\n")
        joined.append(f"{line}{chr(10) * owed if end else ''}{end}{rest}")
        owed = 1 if end else owed + 1
    text = "".join(joined)
    found, place = list[str](), 0
    for token in TOKEN.finditer(text):
        if token["comment"] is None:
            continue
        before = text[place : token.start()]
        blank = re.sub(r"[^\n]", " ", token[0])
        line = f"{''.join(found)}{before}".rpartition("\n")[2] if "\n" in blank else ""
        # A comment within a directive does not end it.
        found += [before, blank.replace("\n", "\\\n") if DIRECTIVE.match(line) else blank]
        place = token.end()
    return "".join([*found, text[place:]])


def files_outside(source: str) -> Iterator[Finding]:
    """Yield findings about included headers outside cl/, which a user's source should not read.

    source : result of `plain_source`
    """
    code = TOKEN.sub(lambda found: " " * len(found[0]), source.replace("\\\n", "  "))  # strings; there are no comments
    for found in INCLUDE.finditer(code):
        rest = source[found.end() :].partition("\n")[0]
        name = HEADER.fullmatch(rest)
        if name is None or not is_header(name[1]):
            what = "only headers of cl/ can be included, by their path in it; write everything else in one file"
            yield Finding("compile", what, source.count("\n", 0, found.start()) + 1)
    for found in ASSEMBLY.finditer(code):
        what = "assembly is not allowed, because it can read files; write OpenCL C"
        yield Finding("compile", what, source.count("\n", 0, found.start()) + 1)


def plain_words(text: str) -> Iterator[Finding]:
    """Yield compiler messages in readable form, with their lines."""
    seen = set[tuple[int, str]]()
    for line, _, message in MESSAGE.findall(text):
        plain = next(
            (say.format(*found.groups()) for pattern, say in PLAIN if (found := re.match(pattern, message))),
            f"the compiler says: {message}",
        )
        if (int(line), plain) not in seen and len(seen) < MOST_MESSAGES:
            seen.add((int(line), plain))
            yield Finding("compile", plain, int(line))
    if not seen:
        yield Finding("compile", f"the compiler says: {' '.join(text.split())[-400:]}")


def _wrong_arguments(source: str, parameters: tuple[Parameter, ...], quantity: Quantity) -> Iterator[Finding]:
    """Yield findings about invalid arguments of a kernel."""
    given = {of.name: of for of in quantity.given}
    for of in parameters:
        line = _line_of(source, of.name)
        if of.name not in given:
            names = ", ".join(given)
            yield Finding("signature", f"`{quantity.name}` has no argument `{of.name}`; it has {names}", line)
        elif not _fits(of, given[of.name], of.name == quantity.output):
            yield Finding("signature", f"`{of.name}` is {_type(of)}; it must be {_wanted(given[of.name])}", line)
        elif of.name == quantity.output and of.is_const:
            yield Finding("signature", f"`{of.name}` is const, but the kernel is to fill it", line)
    if quantity.output not in {of.name for of in parameters}:
        yield Finding("signature", f"the kernel has no argument `{quantity.output}`, to which results are written")


def _fits(of: Parameter, given: Given, is_output: bool) -> bool:
    """Return whether a parameter has a valid type; arrays of vectors may also be declared as arrays of numbers."""
    numbers = {"real": ("float", "double"), "int": ("int", "uint")}
    base = given.kind.rstrip("24")
    vectors = [given.kind.replace(base, name) for name in numbers[base]]
    if not given.is_array:
        return not of.is_array and of.type in vectors
    bits = ("int", "uint") if is_output else ()  # the bits of floats, for atomic additions
    return of.is_array and of.type in (*numbers[base], *vectors, *bits)


def _type(of: Parameter) -> str:
    return f"{of.type} *" if of.is_array else of.type


def _wanted(given: Given) -> str:
    base = given.kind.replace("real", "float")
    return f"`global {base} *{given.name}`" if given.is_array else f"`{base} {given.name}`"


def _line_of(source: str, name: str) -> int | None:
    """Return the number of the first line that contains a name."""
    found = re.search(rf"\b{re.escape(name)}\b", source)
    return None if found is None else source.count("\n", 0, found.start()) + 1
