"""Entries of the tuning file, one per device, and their JSON form with strict checks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ...common.installation import installed_version, shipped
from ...common.variant import PRECISIONS, Setting
from .choices import RULES, SIZES, Choice

if TYPE_CHECKING:
    from ...opencl.device import Device

FORMAT = 1
LARGEST_SIZE = 10**18
LARGEST_SETTING = 10**9
LONGEST_INTEGER = 20  # digits
LONGEST_TIME = 1e12  # ms

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True)
class BestChoice:
    """Best choice for one size.

    size : in the unit of SIZES
    choice : RULES if nothing was faster by more than the noise
    ms, rules_ms : kernel times of this choice and of the rules' choice
    """

    quantity: str
    precision: str
    size: int
    choice: Choice
    ms: float
    rules_ms: float

    @property
    def key(self) -> tuple[str, str, int]:
        """Quantity, precision and size; unique within an entry."""
        return self.quantity, self.precision, self.size


@dataclass(frozen=True)
class Entry:
    """Findings for one device, and the versions with which they were measured.

    kernels : first digits of the SHA-256 of all kernel files
    """

    device: str
    platform: str
    driver: str
    pele_ocl: str
    kernels: str
    date: str
    findings: tuple[BestChoice, ...]

    def is_of(self, device: Device | Entry) -> bool:
        """Return whether it was measured on this device with its current driver."""
        name = device.device if isinstance(device, Entry) else device.name
        return (self.device, self.platform, self.driver) == (name, device.platform, device.driver)

    @property
    def is_current(self) -> bool:
        """Whether it was measured with this version of pele-ocl and its kernels."""
        return (self.pele_ocl, self.kernels) == versions()


@lru_cache(maxsize=1)
def versions() -> tuple[str, str]:
    """Return the version of pele-ocl and the digest of its kernel files."""
    folder = shipped("cl")
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".cl", ".clh"))
    digest = hashlib.sha256(b"".join(bytes(path.relative_to(folder)) + path.read_bytes() for path in files))
    return installed_version(), digest.hexdigest()[:16]


def merged(known: Iterable[Entry], new: Entry) -> list[Entry]:
    """Replace the entry of a device by a new one.

    Findings of the old entry are kept if they are for the same versions and for other sizes.
    """
    known = list(known)
    covered = {finding.key for finding in new.findings}
    old = [entry for entry in known if entry.is_of(new)]
    kept = [f for entry in old if entry.is_current for f in entry.findings if f.key not in covered]
    findings = sorted([*kept, *new.findings], key=lambda finding: finding.key)
    return [*(entry for entry in known if entry not in old), replace(new, findings=tuple(findings))]


def from_json(text: str) -> tuple[Entry, ...]:
    """Parse the entries of a tuning file. Raises ValueError, or RecursionError, for any other text."""
    content = _object(json.loads(text, parse_int=_integer, parse_constant=_refused), "the file")
    if content.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT}")
    return tuple(_entry(_object(item, "a device")) for item in _list(content, "devices"))


def as_json(entry: Entry) -> dict[str, Json]:
    """Return an entry as JSON data."""
    findings: list[Json] = [
        {
            "quantity": finding.quantity, "precision": finding.precision, "size": finding.size,
            "variant": finding.choice.variant, "settings": {
                name: list(value) if isinstance(value, tuple) else value for name, value in finding.choice.settings
            },
            "ms": finding.ms, "rules_ms": finding.rules_ms,
        }
        for finding in entry.findings
    ]  # fmt: skip
    return {**asdict(replace(entry, findings=())), "findings": findings}


def _entry(item: dict[str, Json]) -> Entry:
    names = ("device", "platform", "driver", "pele_ocl", "kernels", "date")
    findings = (_finding(_object(each, "a finding")) for each in _list(item, "findings"))
    return Entry(**{name: _text(item, name) for name in names}, findings=tuple(findings))


def _finding(item: dict[str, Json]) -> BestChoice:
    quantity, precision = _text(item, "quantity"), _text(item, "precision")
    if quantity not in SIZES or precision not in PRECISIONS:
        raise ValueError("a quantity or precision is not known")
    settings = sorted((name, _setting(value)) for name, value in _object(item.get("settings"), "settings").items())
    if not all(name.isidentifier() for name, _ in settings):
        raise ValueError("a setting has no name")
    choice = RULES if item.get("variant") is None else Choice(_text(item, "variant"), tuple(settings))
    size = _whole(item.get("size"), 1, LARGEST_SIZE, "a size")
    return BestChoice(quantity, precision, size, choice, _milliseconds(item, "ms"), _milliseconds(item, "rules_ms"))


def _integer(digits: str) -> int:
    if len(digits) > LONGEST_INTEGER:
        raise ValueError(f"a number has {len(digits):,} digits")
    return int(digits)


def _refused(name: str) -> Json:
    raise ValueError(f"{name} is not a number of JSON")


def _object(value: Json, name: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not a JSON object")
    return value


def _list(item: dict[str, Json], name: str) -> list[Json]:
    value = item.get(name)
    if not isinstance(value, list):
        raise ValueError(f"{name} is not a list")
    return value


def _text(item: dict[str, Json], name: str) -> str:
    """Return text without control characters, which could affect a terminal."""
    value = item.get(name)
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError(f"{name} is not plain text")
    return value


def _setting(value: Json) -> Setting:
    if isinstance(value, list):
        return tuple(_whole(part, 0, LARGEST_SETTING, "a setting") for part in value)
    return _whole(value, 0, LARGEST_SETTING, "a setting")


def _whole(value: Json, least: int, most: int, name: str) -> int:
    """Return an integer; 32.0 and true are invalid."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} is not a whole number from {least} to {most:,}")
    return value


def _milliseconds(item: dict[str, Json], name: str) -> float:
    value = item.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST_TIME:
        raise ValueError(f"{name} is not a time in ms")
    return float(value)
