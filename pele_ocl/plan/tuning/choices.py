"""Choices of a variant and its layout, and the quantities that can be tuned.

Rules (`choose_variant`, `of` of the layouts) make a good choice without measurements. `pele-ocl tune` measures the
best choice among those of `Variant.choices`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from ...common.variant import Machine, Setting, Variant, made_for

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

L = TypeVar("L", bound="DataclassInstance")
S = TypeVar("S")  # host code of a variant


@dataclass(frozen=True)
class Choice:
    """A variant with settings of its layout that differ from the rules.

    variant : None for the variant chosen by the rules
    settings : fields of the layout with their values; all others follow the rules
    """

    variant: str | None = None
    settings: tuple[tuple[str, Setting], ...] = ()

    @classmethod
    def of(cls, variant: str, **settings: Setting) -> Choice:
        return cls(variant, tuple(sorted(settings.items())))

    def __str__(self) -> str:
        values = (f"{name}={_text(value)}" for name, value in self.settings)
        return " ".join([self.variant or "rules", *values])

    def applied(self, variant: str, layout: L) -> L:
        """Apply the settings to a layout if they are for this variant."""
        if variant != self.variant or not self.settings:
            return layout
        return replace(layout, **dict(self.settings))


RULES = Choice()


def _text(value: Setting) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def offered(variants: Mapping[str, Variant[S]], machine: Machine, size: int) -> list[Choice]:
    """All choices that the variants of a quantity offer on a machine, in the order of their table."""
    names = made_for(variants, machine.kind)
    return [Choice.of(name, **settings) for name in names for settings in variants[name].choices(machine, size)]


# The quantities that can be tuned, and the units of their sizes.
SIZES = {"solvent": "atoms", "nonbond": "pairs", "energy": "atoms", "potmap": "evaluations"}
