"""Compiled programs kept on disk from one run to the next.

An entry is one file: a checksum, then the binary. It gets its name when it is complete, so that no process sees half of
it and there is nothing to lock. Whatever goes wrong with the disk, the program is built from its source, and one note
says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs
import pyopencl as cl

from ..errors import CacheWarning
from .device import Device

# These keep what they build from a source by themselves.
KEEPING_VENDORS = ("POCL", "NVIDIA")
CHECKSUM_BYTES = 32


@dataclass(frozen=True)
class Entry:
    """The place of a program in the cache. `name` is None where the program is not kept."""

    name: str | None

    @classmethod
    def of(cls, device: Device, source: str, options: list[str]) -> Entry:
        """The entry of a source built with options for a device by the driver of today."""
        if device.vendor in KEEPING_VENDORS or device.kind == "simulator":
            return cls(None)
        handle = device.handle
        names = (
            device.platform, handle.platform.version, device.name, device.driver, handle.version, handle.extensions,
            handle.native_vector_width_float, *options, source,
        )  # fmt: skip
        return cls(hashlib.sha256(repr(names).encode()).hexdigest())

    def read(self) -> bytes | None:
        """The binary; None where there is none, or a damaged one."""
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
        binary = data[CHECKSUM_BYTES:]
        if not binary or data[:CHECKSUM_BYTES] != self._checksum(binary):
            _note(f"hold a damaged entry, {self.name[:8]}..., which is replaced")
            return None
        return binary

    def write(self, program: cl.Program) -> None:
        """Keep a program that was just built from its source."""
        if self.name is None:
            return
        temporary = None
        try:
            binaries: Any = program.get_info(cl.program_info.BINARIES)
            binary: bytes = binaries[0]
            folder = _folder()
            folder.mkdir(parents=True, exist_ok=True)
            number, temporary = tempfile.mkstemp(dir=folder, prefix="new-")
            with os.fdopen(number, "wb") as file:
                file.write(self._checksum(binary) + binary)
            os.replace(temporary, folder / self.name)
        except cl.Error:
            pass  # a runtime that gives no binaries
        except OSError as error:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            _note(f"cannot be written ({error.strerror})")

    def _checksum(self, binary: bytes) -> bytes:
        """SHA-256 of the entry's name and its binary, so that an entry under another's name is none."""
        return hashlib.sha256(str(self.name).encode() + binary).digest()


def _folder() -> Path:
    return Path(platformdirs.user_cache_dir("pele-ocl"))


_noted: list[str] = []


def _note(trouble: str) -> None:
    """Warn of the cache's first trouble in this process."""
    if not _noted:
        _noted.append(trouble)
        warnings.warn(
            f"compiled kernels are built anew, because those in {_folder()} {trouble}", CacheWarning, stacklevel=2
        )
