"""Read blocks of a control file: check each setting, and collect the names that were not read."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from ...common.errors import FormatError
from ...common.textfiles import quoted
from ...forcefield.control import needed_for

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

_MOST = 1e9
_WORD = re.compile(r"\$\{?\w+\}?")


def setting(
    default: Any, name: str = "", *, within: str = "parameters", least: float = 0.0, above: float = -math.inf,
    most: float = math.inf, choices: Collection[str] = (),
) -> Any:  # fmt: skip
    """Declare a dataclass field as a setting of a control file.

    default : default value; values in the file must have its type
    name : name in the file, by default the field's name in camel case
    within : name of the inner block that contains the setting, "" for none
    least, above, most : bounds of a number: minimum, exclusive lower bound, maximum; choices : allowed texts
    """
    about = {"name": name, "within": within, "least": least, "above": above, "most": most, "choices": choices}
    return field(default=default, metadata=about)


def name_of(own: Field[Any]) -> str:
    """Return the name of a setting in the file."""
    given: str = own.metadata["name"]
    first, *others = own.name.split("_")
    return given or first + "".join(word.capitalize() for word in others)


def settings_of(cls: type[DataclassInstance]) -> Iterator[Field[Any]]:
    """Return the fields of a dataclass that were declared by `setting`."""
    return (own for own in fields(cls) if "within" in own.metadata)


@dataclass
class Unread:
    """Settings of a file that were ignored, and `$WORDS` without a value.

    names : names of ignored settings, in file order; words : `$WORDS` without a value
    """

    names: list[str] = field(default_factory=list)
    words: tuple[str, ...] = ()


class Block:
    """Block of a control file. Names are case-insensitive.

    place : dotted path of the block's name within the file
    """

    def __init__(self, file: object, place: str, values: Mapping[str, object], unread: Unread) -> None:
        self.file, self.place, self._unread = file, place, unread
        self._values = {name.lower(): (name, value) for name, value in values.items()}
        self._asked = set[str]()

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._values

    @property
    def values(self) -> list[str]:
        """Names of the block's settings, spelled as in the file."""
        return [name for name, _ in self._values.values()]

    def named(self, cls: type[DataclassInstance]) -> list[str]:
        """Return the names of the fields of a dataclass that the block sets."""
        return [own.name for own in settings_of(cls) if name_of(own) in self]

    def take(self, name: str) -> object:
        """Return a value of any type, None if the block lacks it."""
        self._asked.add(name.lower())
        return self._values.get(name.lower(), ("", None))[1]

    def block(self, name: str) -> Block:
        """Return an inner block, empty if the block lacks it."""
        found = self.take(name)
        if found is not None and not isinstance(found, dict):
            raise self.fault(name, found, "a block in braces")
        return Block(self.file, f"{self.place}.{name}" if self.place else name, found or {}, self._unread)

    def blocks(self, name: str) -> list[Block]:
        """Return the blocks of a list, empty if the block lacks it."""
        found = self.take(name)
        items = [] if found is None else found
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise self.fault(name, found, "a list of blocks")
        place = f"{self.place}.{name}" if self.place else name
        return [Block(self.file, f"{place}[{k}]", item, self._unread) for k, item in enumerate(items)]

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, empty if the block lacks it; a single text counts as a list."""
        found = self.take(name)
        items = [] if found is None else [found] if isinstance(found, str) else found
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise self.fault(name, found, "a list of texts")
        return tuple(items)

    def text(self, name: str, default: str = "") -> str:
        """Return a text setting."""
        found: str = self._value(name, default, {})
        return found

    def number(self, name: str, default: float, least: float = -_MOST) -> float:
        """Return a numeric setting, at least `least`."""
        found: float = self._value(name, float(default), {"least": least, "above": -math.inf, "most": _MOST})
        return found

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean setting."""
        found: bool = self._value(name, default, {})
        return found

    def point(self, name: str) -> tuple[float, float, float] | None:
        """Return a point (x, y, z), None if the block lacks it."""
        found = self.take(name)
        if found is None:
            return None
        is_point = isinstance(found, list) and len(found) == 3
        if not is_point or not all(_is_number(x) for x in found):  # type: ignore[attr-defined]
            raise self.fault(name, found, "a list of three numbers")
        x, y, z = map(float, found)  # type: ignore[call-overload]
        return x, y, z

    def fill(self, cls: type[T], base: T | None = None, within: str | None = None) -> T:
        """Read the settings of a dataclass.

        base : source of the values that the block does not set, by default the defaults of the dataclass
        within : read only the settings of this inner block, which is this block itself
        """
        begin = cls() if base is None else base
        values = {own.name: getattr(begin, own.name) for own in fields(cls)}
        inner = {"": self} if within is None else {within: self}
        for own in settings_of(cls):
            place = own.metadata["within"]
            if within is not None and place != within:
                continue
            if place not in inner:
                inner[place] = self.block(place)
            of, name = inner[place], name_of(own)
            if name in of:
                values[own.name] = of._value(name, values[own.name], own.metadata)
        for of in inner.values():
            if of is not self:
                of.finish()
        return cls(**values)

    def finish(self) -> None:
        """Record the names of all settings that were not read."""
        left = (name for low, (name, _) in self._values.items() if low not in self._asked)
        self._unread.names += [f"{self.place}.{name}" if self.place else name for name in left]

    def fault(self, name: str, found: object, needed: str) -> FormatError:
        """Build the error for an invalid value."""
        what = needed_for(found, self._unread.words, needed)
        return FormatError(f"{self.file}: {self.place}.{name} is {quoted(found)}; expected {what}")

    def _value(self, name: str, default: Any, about: Mapping[str, Any]) -> Any:
        """Return a value of the default's type. Raises FormatError for another type, and if it is out of bounds."""
        if name not in self:
            return default
        found = self.take(name)
        if isinstance(default, bool):
            if not isinstance(found, bool):
                raise self.fault(name, found, "true or false")
            return found
        if isinstance(default, str):
            return self._text(name, found, about.get("choices", ()))
        if not _is_number(found):
            raise self.fault(name, found, "a number")
        value = float(found)  # type: ignore[arg-type]
        least, above, most = (float(about[key]) for key in ("least", "above", "most"))
        if not (value >= least and value > above and value <= most):
            low = f"above {above:g}" if above > -math.inf else f"from {least:g}"
            raise self.fault(name, found, f"a number {low}" + (f" to {most:g}" if most < math.inf else ""))
        if isinstance(default, int):
            if value != int(value):
                raise self.fault(name, found, "a whole number")
            return int(value)
        return value

    def _text(self, name: str, found: object, choices: Collection[str]) -> str:
        if not isinstance(found, str) or _WORD.search(found):
            raise self.fault(name, found, "a text")
        known = {choice.lower(): choice for choice in choices}
        if known and found.lower() not in known:
            raise self.fault(name, found, f"one of {', '.join(choices)}")
        return known.get(found.lower(), found)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST
