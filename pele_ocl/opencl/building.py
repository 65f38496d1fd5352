"""Build OpenCL programs from the files of cl/, and cache them.

Kernels for rows of an ensemble are built from the same files, preceded by macros that list their parameters;
cl/engine/arguments.clh defines what the macros expand to.

Compiled programs are cached on disk. Each entry is one file with a checksum, a line with the signatures of all kernels,
which runtimes do not report for a binary, and the binary. PoCL caches binaries itself, so its entries contain only the
signatures of programs for rows. Entries are written to a temporary file and then renamed, so processes need no locks
and never read incomplete entries. If the cache cannot be read or written, programs are built from source and one
warning is issued.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import platformdirs
import pyopencl as cl

from ..common.errors import CacheWarning, InputError, KernelBuildError
from ..common.installation import shipped
from . import interface, notices
from .device import Device
from .kernel import Kernel, Parameter, Program, Signature, types_of
from .runtimes import missing_parts

Signatures = Mapping[str, tuple[Parameter, ...]]

# Runtimes whose built-in cache is sufficient. NVIDIA's runtime has a cache, but needs 9 to 22 ms per program from
# source (H200) and 1.3 ms from a binary. PoCL 3.0 needs 24 and 3 ms, but recompiles each kernel to produce a binary,
# which would double the time of the first command on a machine (tests/benchmarks/measured/first-energy.md).
KEEPING_VENDORS = ("POCL",)
CHECKSUM_BYTES = 32


@dataclass(frozen=True)
class Cached:
    """Cached program: the binary, and the parameters of each kernel."""

    binary: bytes
    signatures: Signatures


@dataclass(frozen=True)
class CachedProgram:
    """Cache entry of a program.

    name : file name; None if the program is not cached
    has_binary : False if only the signatures are cached
    """

    name: str | None
    has_binary: bool = True

    @classmethod
    def of(cls, device: Device, source: str, options: list[str], has_binary: bool = True) -> CachedProgram:
        """Return the entry of a source, given the device, its driver and the build options."""
        if has_binary and (device.vendor in KEEPING_VENDORS or device.kind == "simulator"):
            return cls(None)
        handle = device.handle
        names = (
            device.platform, handle.platform.version, device.name, device.driver, handle.version, handle.extensions,
            handle.native_vector_width_float, has_binary, *options, source,
        )  # fmt: skip
        return cls(hashlib.sha256(repr(names).encode()).hexdigest(), has_binary)

    def read(self) -> Cached | None:
        """Read the entry; None if it is missing or damaged."""
        if self.name is None:
            return None
        path = _folder() / self.name
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            _note(f"cannot be read ({error.strerror})")
            return None
        content = data[CHECKSUM_BYTES:]
        if not content or data[:CHECKSUM_BYTES] != self._checksum(content):
            _note(f"contain a damaged entry, {self.name[:8]}..., which is replaced")
            return None
        told, _, binary = content.partition(b"\n")
        try:
            parameters = {name: tuple(Parameter(*of) for of in each) for name, each in json.loads(told).items()}
        except (ValueError, TypeError, AttributeError):  # written by another version of pele-ocl
            return None
        return Cached(binary, parameters)

    def write(self, program: cl.Program, signatures: Callable[[], Signatures]) -> None:
        """Cache a program that was built from source."""
        if self.name is None:
            return
        temporary = None
        try:
            binaries: Any = program.get_info(cl.program_info.BINARIES) if self.has_binary else [b""]
            told = {kernel: [astuple(of) for of in parameters] for kernel, parameters in signatures().items()}
            content = json.dumps(told).encode() + b"\n" + binaries[0]
            folder = _folder()
            folder.mkdir(parents=True, exist_ok=True)
            number, temporary = tempfile.mkstemp(dir=folder, prefix="new-")
            with os.fdopen(number, "wb") as file:
                file.write(self._checksum(content) + content)
            os.replace(temporary, folder / self.name)
        except cl.Error:
            pass  # the runtime does not provide binaries
        except OSError as error:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            _note(f"cannot be written ({error.strerror})")

    def _checksum(self, content: bytes) -> bytes:
        """Return the SHA-256 of the entry's name and content; including the name detects renamed entries."""
        return hashlib.sha256(str(self.name).encode() + content).digest()


def _folder() -> Path:
    return Path(platformdirs.user_cache_dir("pele-ocl"))


_noted: list[str] = []


def _note(trouble: str) -> None:
    """Issue a warning for the first cache error of the process."""
    if not _noted:
        _noted.append(trouble)
        warnings.warn(
            f"compiled kernels are rebuilt, because those in {_folder()} {trouble}", CacheWarning, stacklevel=2
        )


# Builds are serialized, because PyOpenCL changes environment variables during a build, and Python's warning filters are
# shared by all threads. The lock is reentrant, because finalizers of user objects may build programs during a build.
BUILDING = threading.RLock()

# Compiler errors for a work-group that needs too many registers or too much local memory: an error code, or with NVIDIA
# a message of ptxas.
GROUP_CODES = {cl.status_code.OUT_OF_RESOURCES, cl.status_code.INVALID_WORK_GROUP_SIZE}
GROUP_COMPLAINT = re.compile(
    r"error.*(too much shared data|too many resources|local memory .*exceed|work.?group.?size|\b(req|max)ntid)", re.I
)


HEADER = re.compile(r'^[ \t]*#include "([\w./]+)"', re.MULTILINE)
HEADER_OF_ROWS = "engine/arguments.clh"
_SERVES = re.compile(r"^(?!\s*(?://|#)).*\bSERVES_ROWS\((\w+)\)", re.MULTILINE)

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)  # of OpenCL C

ARGUMENT_INFO = "-cl-kernel-arg-info"  # makes compilers store names and types of parameters


class GroupTooLargeError(KernelBuildError):
    """The device's compiler rejected a kernel because its work-group is too large."""


def get_kernel(
    device: Device, file: str, name: str, precision: str, width: int = 1, portable: bool = False,
    of_rows: bool = False, **defines: int,
) -> Kernel:  # fmt: skip
    """Build kernel `name` of cl/`file` for a device; kernels are cached.

    precision : "float32" or "float64"
    width : reals per vector
    portable : whether to exclude code written for one vendor's compiler
    of_rows : whether the kernel processes many structures using a table of arguments, see cl/engine/arguments.clh
    defines : additional macros

    Raises KernelBuildError with the compiler's message, or if the file has no kernel of this name.
    """
    key = (file, name, precision, width, portable, of_rows, tuple(sorted(defines.items())))
    kernel: Kernel | None = device.kernels.get(key)
    if kernel is None:
        with BUILDING:
            program = get_program(device, file, precision, width, portable, defines, name if of_rows else None)
            types = types_of(precision, defines.get("FIXED_BITS", 0), defines.get("DOUBLES", 0))
            _require_kernel(file, name, program.names)
            with device:
                signature = Signature(name, program.signature(name), types)
                made = Kernel(program.handle, name, device.handle, device.vendor, signature)
                kernel = device.kernels.setdefault(key, made)
    return kernel


def get_program(
    device: Device, file: str, precision: str, width: int, portable: bool, defines: Mapping[str, int],
    of_rows: str | None = None,
) -> Program:  # fmt: skip
    """Build the program of cl/`file` for a device; programs are cached. Parameters as in get_kernel.

    of_rows : name of the kernel to build for rows; None to build the file unchanged
    """
    macros = tuple(sorted(defines.items()))
    key = (file, precision, width, portable, of_rows, macros)
    with BUILDING:
        if key not in device.programs:
            device.require_precision(precision)
            options = _options(device, precision, width, portable, defines)
            with notices.building(device.name), device:
                if of_rows is None:
                    device.programs[key] = _build(device, file, expanded_source(file, source_of), options)
                else:
                    program = _program_of_rows(device, file, of_rows, options)
                    for kernel in program.signatures or ():  # a build contains all kernels of the file
                        device.programs[(file, precision, width, portable, kernel, macros)] = program
        return device.programs[key]


def _program_of_rows(device: Device, file: str, name: str, options: list[str]) -> Program:
    """Build the kernels of a file for rows; the signatures are those declared in the file."""
    source, seen = expanded_source(file, source_of), set[str]()
    declared = _declared(device, file, source, options)
    _require_kernel(file, name, declared)
    served = served_kernels(source, name, declared)
    whole = source_of_rows(file, served, declared, lambda each: expanded_source(each, source_of, seen))
    try:
        handle = _build(device, file, whole, [*options, "-DOF_ROWS=1"]).handle
    except KernelBuildError as error:
        if served[name] or isinstance(error, GroupTooLargeError):
            raise
        raise KernelBuildError(
            f"for rows of an ensemble kernel {name} cannot be called as a function; include engine/arguments.clh and "
            f"begin its statements with SERVES_ROWS({name}): {error}"
        ) from error
    return Program(handle, {kernel: declared[kernel] for kernel in served})


def _require_kernel(file: str, name: str, names: Iterable[str]) -> None:
    """Raise KernelBuildError if a file has no kernel of this name."""
    if name not in names:
        there = f"there are {', '.join(sorted(names))}" if names else "it has none"
        raise KernelBuildError(f"{_shown(file)} has no kernel {name}; {there}")


def _declared(device: Device, file: str, source: str, options: list[str]) -> Mapping[str, tuple[Parameter, ...]]:
    """Return the parameters of all kernels of a file as declared; compiled only if they are not cached."""
    options = _named_in(source, [*options, "-DDECLARED_ALONE=1"])
    entry = CachedProgram.of(device, source, options, has_binary=False)
    cached = entry.read()
    if cached is not None:
        return cached.signatures
    program = _build(device, file, source, options)
    declared = program.all_signatures()
    entry.write(program.handle, lambda: declared)
    return declared


def _options(device: Device, precision: str, width: int, portable: bool, defines: Mapping[str, int]) -> list[str]:
    vendor, generation = f"VENDOR_{device.vendor}", device.generation
    macros = {"REAL_BITS": int(precision[-2:]), "WIDTH": width, vendor: generation, **defines}
    if portable:
        macros["PORTABLE"] = 1
    # Floating-point atomics and device-scope fences need OpenCL C 3.0, except on NVIDIA, where they are written in PTX.
    is_newer = defines.get("NATIVE_ATOMICS") or defines.get("FUSED")
    standard = "CL3.0" if is_newer and device.vendor != "NVIDIA" else "CL1.2"
    options = [f"-cl-std={standard}", "-cl-mad-enable", ARGUMENT_INFO]
    if precision == "float32":
        options.append("-cl-denorms-are-zero")
    return options + [f"-D{name}={value}" for name, value in macros.items()]


def _named_in(source: str, options: list[str]) -> list[str]:
    """Remove macros that the source does not use, so that kernels are not compiled again for each of their values."""
    names = set(re.findall(r"\w+", source))
    return [option for option in options if not option.startswith("-D") or option[2:].split("=")[0] in names]


def _build(device: Device, file: str, source: str, options: list[str]) -> Program:
    """Build source derived from cl/`file`, or load the program from the cache."""
    options = _named_in(source, options)
    entry = CachedProgram.of(device, source, options)
    cached = entry.read()
    require_linker(device)
    try:
        with BUILDING, _compiling():
            if cached is not None:
                try:
                    handle: cl.Program = cl.Program(device.context, [device.handle], [cached.binary]).build(options)
                    return Program(handle, cached.signatures)
                except cl.Error:  # the runtime rejects the binary
                    pass
            uncached: Any = False
            program = Program(cl.Program(device.context, source).build(options, cache_dir=uncached))
    except cl.Error as error:
        if "unknown target CPU" in str(error):
            raise KernelBuildError(
                f"the compiler of {device} does not support this processor; install another runtime: pip install "
                "'pele-ocl[intel]'; or set PELE_OCL_NAME_PROCESSOR=1, which makes PoCL 3.0 compile for an older "
                "processor"
            ) from error
        kind = GroupTooLargeError if is_about_the_group(error) else KernelBuildError
        words = _words_of(error)
        if file in _TEXTS:
            words = words.replace(file, _PATHS.get(file, "text"))
        raise kind(f"{_shown(file)} does not compile on {device.name} with {' '.join(options)}: {words}") from error
    entry.write(program.handle, program.all_signatures)
    return program


def require_linker(device: Device) -> None:
    """Raise KernelBuildError if PoCL 3.0 would abort the process because the system has no linker or libgcc."""
    if " PoCL 3.0" in str(device.handle.platform.version) and (missing := missing_parts()):
        raise KernelBuildError(
            f"{device} links kernels with the system's {' and '.join(missing)}, which this system does not have: "
            "install gcc (apt-get install gcc, or dnf install gcc), or another runtime: pip install 'pele-ocl[intel]'"
        )


def _words_of(error: cl.Error) -> str:
    """Return the compiler's message without the text that PyOpenCL adds."""
    found = re.search(r"^Build on <.*>:\s*\n(.*?)(?=^\(options: |\Z)", str(error), re.DOTALL | re.MULTILINE)
    return found[1].strip() if found and found[1].strip() else str(error)


def is_about_the_group(error: cl.Error) -> bool:
    """Return whether the build may succeed with a smaller work-group."""
    return error.code in GROUP_CODES or GROUP_COMPLAINT.search(str(error)) is not None


@contextmanager
def _compiling() -> Iterator[None]:
    """Suppress compiler warnings, and unset PYOPENCL_BUILD_OPTIONS, which could change results."""
    own = os.environ.pop("PYOPENCL_BUILD_OPTIONS", None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # an error is raised
            yield
    finally:
        if own is not None:
            os.environ["PYOPENCL_BUILD_OPTIONS"] = own


_TEXTS: dict[str, str] = {}  # sources from outside cl/, by name
_PATHS: dict[str, str] = {}  # paths of those that are files, for messages


def _shown(file: str) -> str:
    """Return the name of a kernel file for messages."""
    return _PATHS.get(file) or ("the text of the kernel" if file in _TEXTS else f"cl/{file}")


def named_source(text: str, stem: str = "text") -> str:
    """Register a source from outside cl/ and return the name to build it by. stem : prefix of the name"""
    name = f"{stem}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.cl"
    _TEXTS[name] = text
    return name


def kernel_file(source: str | Path) -> str:
    """Return the name of a kernel source for `get_kernel`.

    source : path within cl/, the source text itself, or a Path to any other file

    Raises InputError if the file does not exist or cannot be read.
    """
    if not isinstance(source, Path):
        if "\n" in source:
            return named_source(source)
        if not (shipped("cl") / source).is_file():
            raise InputError(f"cl/{source} does not exist; give your own file as a Path")
        return source
    ours, path = shipped("cl").resolve(), source.resolve()
    if path.is_relative_to(ours):
        return str(path.relative_to(ours))
    try:
        name = named_source(source.read_text(encoding="utf-8"), source.stem)
        _PATHS[name] = str(source)
        return name
    except (OSError, ValueError) as error:
        raise InputError(f"{source}: the kernel cannot be read: {error}") from None


def source_of(file: str) -> str:
    """Read a kernel file, or generate the header of definitions shared by host and kernels."""
    if file in _TEXTS:
        return _TEXTS[file]
    if file.startswith(interface.FOLDER):
        return interface.HEADERS[file.removeprefix(interface.FOLDER)]
    return (shipped("cl") / file).read_text()


def is_header(file: str) -> bool:
    """Return whether a path can be included: it must be relative and contain no ".."."""
    return not PurePosixPath(file).is_absolute() and ".." not in PurePosixPath(file).parts


def expanded_source(file: str, read: Callable[[str], str], seen: set[str] | None = None) -> str:
    """Return a kernel file with its headers inserted, each once, and #line directives for compiler messages.

    Headers are not found by -I, because compilers do not accept folder names with spaces. A file without headers gets
    no directives, because NVIDIA's compiler would count them as lines.
    """
    source = read(file)
    if seen is None and not HEADER.search(source):
        return source
    seen = set() if seen is None else seen
    seen.add(file)
    lines = [f'#line 1 "{file}"']
    branching = False  # whether a header may be inside a conditional branch, whose #line directives may be skipped
    for number, line in enumerate(source.splitlines(), 1):
        header = HEADER.match(line)
        if header is None:
            lines.append(line)
            if branching and re.match(r"\s*#(elif|else|endif)", line):
                lines.append(f'#line {number + 1} "{file}"')
        elif not is_header(header[1]):
            raise KernelBuildError(
                f"{_PATHS.get(file, file)}:{number}: {header[1]} is not a file of cl/; only headers of cl/ can "
                "be included"
            )
        elif header[1] not in seen:
            lines += [expanded_source(header[1], read, seen), f'#line {number + 1} "{file}"']
            branching = True
        else:
            lines.append("")
    return "\n".join(lines)


def served_kernels(source: str, name: str, signatures: Signatures) -> dict[str, bool]:
    """Return the kernels of a source to build for rows, and whether each uses SERVES_ROWS (optional for `name`)."""
    return {name: False} | {kernel: True for kernel in _SERVES.findall(source) if kernel in signatures}


def source_of_rows(
    file: str, served: Mapping[str, bool], signatures: Signatures, expanded: Callable[[str], str]
) -> str:  # fmt: skip
    """Return the source of a kernel file preceded by macros that build its kernels for rows.

    served : from served_kernels; signatures : parameters of the kernels
    expanded : returns a file with its headers inserted, each once
    """
    header, source = expanded(HEADER_OF_ROWS), expanded(file)
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
    """Count the comma-separated parts of a kernel's declaration, which are the arguments of the macro with its name.

    Variadic macros are not used, because NVIDIA's compiler rejects them.
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
    """Return the macro that lists a kernel's parameters."""
    each = (
        f"ARRAY({'const ' * of.is_const}{of.type}, *{'restrict' * of.is_restrict}, {of.name})"
        if of.is_array
        else f"NUMBER({of.type}, {of.name})"
        for of in parameters
    )
    return f"#define PARAMETERS_OF_{kernel}(NUMBER, ARRAY) {' '.join(each)}"
