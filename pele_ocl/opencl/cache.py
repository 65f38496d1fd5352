"""Compiled programs cached on disk from one run to the next.

An entry is one file: a checksum, a line with the signatures of all kernels, which runtimes do not tell of a binary, and
then the binary. For PoCL, which caches binaries itself, entries have only signatures, of programs for rows. The file
gets its name when it is complete: no process sees half of it, and nothing is locked. If anything goes wrong with the
disk, the program is built from its source, and one note says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import platformdirs
import pyopencl as cl

from ..common.errors import CacheWarning
from .device import Device
from .kernel import Parameter

Signatures = Mapping[str, tuple[Parameter, ...]]

# These have a cache of their own. So has NVIDIA's runtime, but it takes 9 to 22 ms per program from a source (H200),
# and 1.3 ms from a binary. PoCL 3.0 takes 24 and 3 ms, but compiles each kernel once more to make a binary, so that the
# first command on a machine would take twice as long (tests/benchmarks/measured/first-energy.md).
KEEPING_VENDORS = ("POCL",)
CHECKSUM_BYTES = 32


@dataclass(frozen=True)
class Cached:
    """Program in the cache: its binary, and the parameters of each kernel."""

    binary: bytes
    signatures: Signatures


@dataclass(frozen=True)
class CachedProgram:
    """Place of a program in the cache.

    name : None if the program is not cached
    has_binary : False for signatures alone
    """

    name: str | None
    has_binary: bool = True

    @classmethod
    def of(cls, device: Device, source: str, options: list[str], has_binary: bool = True) -> CachedProgram:
        """Find the entry of a source built with options for a device by the driver of today."""
        if has_binary and (device.vendor in KEEPING_VENDORS or device.kind == "simulator"):
            return cls(None)
        handle = device.handle
        names = (
            device.platform, handle.platform.version, device.name, device.driver, handle.version, handle.extensions,
            handle.native_vector_width_float, has_binary, *options, source,
        )  # fmt: skip
        return cls(hashlib.sha256(repr(names).encode()).hexdigest(), has_binary)

    def read(self) -> Cached | None:
        """Read the program; None if there is none, or a damaged one."""
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
            _note(f"hold a damaged entry, {self.name[:8]}..., which is replaced")
            return None
        told, _, binary = content.partition(b"\n")
        try:
            parameters = {name: tuple(Parameter(*of) for of in each) for name, each in json.loads(told).items()}
        except (ValueError, TypeError, AttributeError):  # of another version of this program
            return None
        return Cached(binary, parameters)

    def write(self, program: cl.Program, signatures: Callable[[], Signatures]) -> None:
        """Cache a program that was just built from its source."""
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
            pass  # a runtime that gives no binaries
        except OSError as error:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            _note(f"cannot be written ({error.strerror})")

    def _checksum(self, content: bytes) -> bytes:
        """SHA-256 of the entry's name and its content, so that an entry under another's name is none."""
        return hashlib.sha256(str(self.name).encode() + content).digest()


def _folder() -> Path:
    return Path(platformdirs.user_cache_dir("pele-ocl"))


_noted: list[str] = []


def _note(trouble: str) -> None:
    """Warn of the cache's first trouble in this process."""
    if not _noted:
        _noted.append(trouble)
        warnings.warn(
            f"compiled kernels are rebuilt, because those in {_folder()} {trouble}", CacheWarning, stacklevel=2
        )
