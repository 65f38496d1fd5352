"""What a map file says about itself beside the numbers, as lines of text: title, unit, how it was made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...atoms import Atoms
from ...grid import Map
from ..writing import flat_texts

_UNIT = re.compile(r"unit: *(?P<unit>.*?)(?: at (?P<temperature>\d+(?:\.\d+)?) K)?")
_APBS_UNIT = re.compile(r"POTENTIAL \((?P<unit>kT/e)\)")


@dataclass(frozen=True)
class Details:
    """What goes into a file beside the map, as far as the format has room for it: write_map."""

    atoms: Atoms | None = None
    attributes: Mapping[str, object] = field(default_factory=dict)
    extra: Mapping[str, Map] = field(default_factory=dict)


def unit_line(map_: Map) -> str:
    """The line `unit: kT/e at 298.15 K`."""
    at = f" at {map_.temperature:.10g} K" if map_.unit == "kT/e" and map_.temperature is not None else ""
    return f"unit: {_one_line(map_.unit)}{at}"


def title_line(map_: Map) -> str:
    """The title as one line that cannot be taken for the unit's."""
    title = _one_line(map_.title)
    return f"({title})" if title.startswith("unit:") else title


def note_lines(map_: Map, attributes: Mapping[str, object]) -> list[str]:
    """Title, if there is one, unit, and the attributes as `name: value`."""
    title = title_line(map_)
    return [
        *([title] if title else []),
        unit_line(map_),
        *(f"{name}: {_one_line(text)}" for name, text in flat_texts(attributes).items()),
    ]


def understood(lines: Iterable[str]) -> dict[str, Any]:
    """Title, unit and temperature, as far as lines of text tell them: the fields of a Map."""
    fields: dict[str, Any] = {}
    for line in map(_one_line, lines):
        unit = _UNIT.fullmatch(line) or _APBS_UNIT.fullmatch(line)
        if unit is not None and "unit" not in fields:
            fields |= {name: text for name, text in unit.groupdict().items() if text is not None}
        elif line and not fields:
            fields["title"] = line
    if "temperature" in fields:
        fields["temperature"] = float(fields["temperature"])
    return fields


def _one_line(text: str) -> str:
    return " ".join(text.split())
