"""Energies as functions of tensors, which torch differentiates: `pele_ocl.torch.energies(plan, positions)`.

Needs torch: pip install 'pele-ocl[torch]'.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .common.errors import InputError
from .common.extras import extra
from .energy import Energy
from .nonbond import Nonbond

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["energies"]


def energies(plan: Energy | Nonbond, positions: Tensor) -> Tensor:
    """Energies of positions, differentiable once: the gradient is computed along with them.

    plan : with gradients if the positions require them; precision="float64" passes torch.autograd.gradcheck
    positions : (n, 3) or (m, n, 3) A, on any device of torch

    Returns () or (m,) kcal/mol, of the type and on the device of the positions. Memory is shared with a CPU's tensors.
    Raises InputError for other shapes, where conformations fail, for second derivatives, and if torch is missing.
    """
    torch = extra("torch", "a function for torch")
    if not isinstance(positions, torch.Tensor) or positions.ndim not in (2, 3):
        raise InputError("positions are no tensor of shape (n, 3) or (m, n, 3)")
    found: Tensor = _differentiable().apply(positions, plan)[0]
    return found


@cache
def _differentiable() -> Any:
    """Make the function of positions and a plan that gives energies and gradients, when torch is first needed."""
    torch: Any = extra("torch", "a function for torch")

    class Energies(torch.autograd.Function):  # type: ignore[misc]
        """Energies and their gradients, from one evaluation."""

        @staticmethod
        def forward(positions: Tensor, plan: Energy | Nonbond) -> tuple[Tensor, Tensor]:
            given = positions.detach().cpu().numpy()
            batch = plan.evaluate_batch(given if given.ndim == 3 else given[np.newaxis])
            gradients = np.full(0, np.nan) if batch.gradients is None else batch.gradients.reshape(given.shape)
            total = torch.from_numpy(batch.total.reshape(given.shape[:-2]))
            return total.to(positions), torch.from_numpy(gradients).to(positions)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
            ctx.save_for_backward(inputs[0], output[1])
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx: Any, outer: Tensor, _: object) -> tuple[Tensor, None]:
            positions, gradients = ctx.saved_tensors
            if not gradients.numel():
                raise InputError("the plan computes no gradients; make it with gradient=True")
            return Slopes.apply(outer, positions, gradients), None

    class Slopes(torch.autograd.Function):  # type: ignore[misc]
        """Gradient of a function of energies. Positions are an input, so that differentiation ends here."""

        @staticmethod
        def forward(outer: Tensor, positions: Tensor, gradients: Tensor) -> Tensor:
            return outer[..., None, None] * gradients

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, outer: Tensor) -> None:
            raise InputError("second derivatives of energies are not computed; differentiate once, or by differences")

    return Energies
