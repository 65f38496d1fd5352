"""Common part of the variants of the ladder."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeVar

from ..passes import ListPasses
from ..task import PairListTask

if TYPE_CHECKING:
    from ...opencl.signature import Arguments

GROUP = 128

Index = TypeVar("Index")


class LadderPasses(ListPasses[Index]):
    """Passes that take one conformation after the other, as the thesis has them."""

    most_conformations: ClassVar[int | None] = 1

    @property
    def _are_many(self) -> bool:
        return True  # in a buffer of their own, that the kernels stay as plain as can be

    def _list_arguments(self, task: PairListTask) -> Arguments:
        """LIST_ARGUMENTS of cl/nonbond/ladder/list.clh."""
        return dict(
            model=task.molecule.traits.model, n_pairs=task.n_pairs, pairs=task.pairs, **task.own_arguments,
            **self.named("points", "traits"),
        )  # fmt: skip
