"""Title, unit and origin of a map as lines of text, which the formats put beside the numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import printable
from ...grid import Map
from ..tables import flat_texts

_UNIT = re.compile(r"unit: *(?P<unit>.*?)(?: at (?P<temperature>\d+(?:\.\d+)?) K)?")
_APBS_UNIT = re.compile(r"POTENTIAL \((?P<unit>kT/e)\)")


def unit_line(map_: Map) -> str:
    """The line `unit: kT/e at 298.15 K`."""
    return f"unit: {one_line(map_.full_unit)}"


def title_line(map_: Map) -> str:
    """The title as one line that cannot be taken for the unit's."""
    title = one_line(map_.title)
    return f"({title})" if title.startswith("unit:") else title


def head_lines(map_: Map, attributes: Mapping[str, object]) -> list[str]:
    """Title, if there is one, unit, and the attributes as `name: value`."""
    title = title_line(map_)
    return [
        *([title] if title else []),
        unit_line(map_),
        *(f"{name}: {one_line(text)}" for name, text in flat_texts(attributes).items()),
    ]


def understood(lines: Iterable[str]) -> dict[str, Any]:
    """Title, unit and temperature, as far as lines of text tell them: the fields of a Map.

    The title is what stands before the unit, or the first line where no unit is said.
    """
    texts = [text for text in map(one_line, lines) if text]
    for k, text in enumerate(texts):
        unit = _UNIT.fullmatch(text) or _APBS_UNIT.fullmatch(text)
        if unit is not None:
            kelvin = unit.groupdict().get("temperature")
            return {
                "title": " ".join(texts[:k]),
                "unit": unit["unit"],
                "temperature": None if kelvin is None else float(kelvin),
            }
    return {"title": texts[0]} if texts else {}


def one_line(text: str) -> str:
    """The text with single blanks, and control characters as escapes: it may come from any file."""
    return printable(" ".join(text.split()))
