"""A choice of a variant and its layout, and the quantities for which there are choices.

Rules without figures of any machine (`choose_variant`, `of` of the layouts) pick a good one. `pele-ocl tune` measures
the best one that the variants offer (`Variant.choices`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from ...common.variant import Machine, Setting, Variant, made_for

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

L = TypeVar("L", bound="DataclassInstance")
S = TypeVar("S")  # the host steps of a quantity's variants


@dataclass(frozen=True)
class Choice:
    """A variant and the settings of its layout that differ from the rules'.

    variant : None for the one that the rules say
    settings : fields of the quantity's layout with their values; all others are as the rules say
    """

    variant: str | None = None
    settings: tuple[tuple[str, Setting], ...] = ()

    @classmethod
    def of(cls, variant: str, **settings: Setting) -> Choice:
        """A choice with its settings by name."""
        return cls(variant, tuple(sorted(settings.items())))

    def __str__(self) -> str:
        values = (f"{name}={_text(value)}" for name, value in self.settings)
        return " ".join([self.variant or "rules", *values])

    def applied(self, variant: str, layout: L) -> L:
        """Apply this choice to the layout of a variant; the rules' if the choice is another variant."""
        if variant != self.variant or not self.settings:
            return layout
        return replace(layout, **dict(self.settings))


RULES = Choice()


def _text(value: Setting) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def offered(variants: Mapping[str, Variant[S]], machine: Machine, size: int) -> list[Choice]:
    """All choices that a quantity's variants offer on a machine, in the order of their table."""
    names = made_for(variants, machine.kind)
    return [Choice.of(name, **settings) for name in names for settings in variants[name].choices(machine, size)]


# The quantities that are tuned, and what the sizes of each are counted in.
SIZES = {"solvent": "atoms", "nonbond": "pairs", "energy": "atoms", "potmap": "evaluations"}
