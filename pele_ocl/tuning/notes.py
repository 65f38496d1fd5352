"""The file that remembers what `pele-ocl tune` measured: read once, checked, and replaced as a whole."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from ..errors import InputError
from ..formats.writing import refuse_target, replacing
from ..paths import shipped
from .choices import CHOICES, RULES, Choice

if TYPE_CHECKING:
    from ..opencl.device import Device

VARIABLE = "PELE_OCL_TUNING"  # a path, or "off"
FORMAT = 1


class TuningWarning(UserWarning):
    """A tuning file that cannot be used; the rules decide in its place."""


@dataclass(frozen=True)
class Finding:
    """What was best for one size.

    size : in the unit of SIZES
    choice : RULES where nothing was faster by more than the noise
    ms, rules_ms : kernel times of the choice and of what the rules say
    """

    quantity: str
    precision: str
    size: int
    choice: Choice
    ms: float
    rules_ms: float


@dataclass(frozen=True)
class Entry:
    """What is known of one device, and what it was measured with.

    kernels : the first digits of the SHA-256 of all kernel files
    """

    device: str
    platform: str
    driver: str
    pele_ocl: str
    kernels: str
    date: str
    findings: tuple[Finding, ...]

    def is_of(self, device: Device) -> bool:
        """Whether it was measured on this device with the driver that it has now."""
        return (self.device, self.platform, self.driver) == (device.name, device.platform, device.driver)

    @property
    def is_current(self) -> bool:
        """Whether it was measured with this pele-ocl and its kernels."""
        return (self.pele_ocl, self.kernels) == versions()


@lru_cache(maxsize=1)
def versions() -> tuple[str, str]:
    """The version of pele-ocl and the digest of its kernel files."""
    from .. import __version__

    folder = shipped("cl")
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".cl", ".clh"))
    digest = hashlib.sha256(b"".join(bytes(path.relative_to(folder)) + path.read_bytes() for path in files))
    return __version__, digest.hexdigest()[:16]


def tuning_path() -> Path | None:
    """Where the file is, whether it exists or not; None where PELE_OCL_TUNING is off."""
    given = os.environ.get(VARIABLE, "").strip()
    if given.lower() == "off":
        return None
    return Path(given) if given else Path(platformdirs.user_cache_dir("pele-ocl")) / "tuning.json"


def require_path() -> Path:
    """As tuning_path. Raises InputError where the file is switched off."""
    path = tuning_path()
    if path is None:
        raise InputError(f"{VARIABLE} is off, so there is no tuning file; unset it, or set it to a path")
    return path


def entries() -> tuple[Entry, ...]:
    """All that is remembered; nothing where there is no file. A file that cannot be read is a TuningWarning."""
    path = tuning_path()
    return () if path is None else _read(path)


@lru_cache(maxsize=8)
def _read(path: Path) -> tuple[Entry, ...]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']!r} is not {FORMAT}")
        return tuple(_entry(item) for item in content["devices"])
    except FileNotFoundError:
        return ()
    except OSError as error:
        reason = error.strerror or str(error)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
    sentence = f"{path}: not a tuning file that can be used ({reason}); built-in rules choose"
    warnings.warn(f"{sentence}, and `pele-ocl tune` writes it anew", TuningWarning, stacklevel=2)
    return ()


def _entry(item: dict[str, Any]) -> Entry:
    texts = {name: str(item[name]) for name in ("device", "platform", "driver", "pele_ocl", "kernels", "date")}
    return Entry(**texts, findings=tuple(_finding(row) for row in item["findings"]))


def _finding(row: dict[str, Any]) -> Finding:
    if row["quantity"] not in CHOICES:
        raise ValueError(f"there is no quantity {row['quantity']!r}")
    settings = {name: tuple(v) if isinstance(v, list) else v for name, v in row["settings"].items()}
    choice = RULES if row["variant"] is None else Choice.of(str(row["variant"]), **settings)
    size, ms, rules_ms = int(row["size"]), float(row["ms"]), float(row["rules_ms"])
    if size < 1:
        raise ValueError(f"size {size}")
    return Finding(str(row["quantity"]), str(row["precision"]), size, choice, ms, rules_ms)


def as_json(entry: Entry) -> dict[str, Any]:
    """An entry as it stands in the file."""
    findings = [
        {**asdict(finding), "variant": finding.choice.variant, "settings": dict(finding.choice.settings)}
        for finding in entry.findings
    ]
    for row in findings:
        del row["choice"]
    return {**asdict(replace(entry, findings=())), "findings": findings}


def remember(entry: Entry) -> None:
    """Put an entry into the file; what it does not cover of the same device and versions stays, as do other devices.

    Raises FormatError where the file cannot be written.
    """
    known = entries()
    same = [old for old in known if _same_device(old, entry)]
    covered = {(finding.quantity, finding.precision, finding.size) for finding in entry.findings}
    kept = [
        finding for old in same if old.is_current for finding in old.findings
        if (finding.quantity, finding.precision, finding.size) not in covered
    ]  # fmt: skip
    findings = sorted([*kept, *entry.findings], key=lambda f: (f.quantity, f.precision, f.size))
    _write([*(old for old in known if old not in same), replace(entry, findings=tuple(findings))])


def _same_device(one: Entry, other: Entry) -> bool:
    return (one.device, one.platform, one.driver) == (other.device, other.platform, other.driver)


def _write(known: Sequence[Entry]) -> None:
    path = prepare_folder()
    content = {"format": FORMAT, "devices": [as_json(entry) for entry in known]}
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    _read.cache_clear()


def prepare_folder() -> Path:
    """The file's path, its folder made; to be called before anything is measured.

    Raises InputError or FormatError where it could not be written.
    """
    path = require_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{path.parent}: cannot be made ({error.strerror}); set {VARIABLE} to a path that can be written"
        ) from error
    refuse_target(path)
    return path


def forget(devices: Sequence[Device] = ()) -> bool:
    """Forget what was measured on some devices, or the whole file; whether there was anything.

    Raises FormatError where the file cannot be written.
    """
    path = require_path()
    if not path.exists():
        return False
    known = entries() if devices else ()
    kept = [entry for entry in known if not any(entry.is_of(device) for device in devices)]
    if kept:
        _write(kept)
    else:
        path.unlink()
    _read.cache_clear()
    return not devices or len(kept) < len(known)
