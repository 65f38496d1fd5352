"""Energies as functions of tensors, which torch differentiates: `pele_ocl.torch.energies(plan, positions)`.

Needs torch: pip install 'pele-ocl[torch]'.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .energy import Energy
from .errors import InputError
from .extras import missing
from .nonbond import Nonbond

try:
    import torch
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "torch":
        raise
    raise missing("torch", "a function for torch") from None

__all__ = ["energies"]


def energies(plan: Energy | Nonbond, positions: torch.Tensor) -> torch.Tensor:
    """Energies of positions, differentiable once: the gradient is computed along with them.

    plan : with gradients if the positions require them; precision="float64" passes torch.autograd.gradcheck
    positions : (n, 3) or (m, n, 3) A, on any device of torch

    Returns () or (m,) kcal/mol, of the type and on the device of the positions. Memory is shared with a CPU's tensors.
    Raises InputError for other shapes, where conformations fail, and for second derivatives.
    """
    if not isinstance(positions, torch.Tensor) or positions.ndim not in (2, 3):
        raise InputError("positions are no tensor of shape (n, 3) or (m, n, 3)")
    return _Energies.apply(positions, plan)[0]


class _Energies(torch.autograd.Function):  # type: ignore[misc]
    """Energies and their gradients, from one evaluation."""

    @staticmethod
    def forward(positions: torch.Tensor, plan: Energy | Nonbond) -> tuple[torch.Tensor, torch.Tensor]:
        given = positions.detach().cpu().numpy()
        batch = plan.evaluate_batch(given if given.ndim == 3 else given[np.newaxis])
        gradients = np.full(0, np.nan) if batch.gradients is None else batch.gradients.reshape(given.shape)
        total = torch.from_numpy(batch.total.reshape(given.shape[:-2]))
        return total.to(positions), torch.from_numpy(gradients).to(positions)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
        ctx.save_for_backward(inputs[0], output[1])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, outer: torch.Tensor, _: object) -> tuple[torch.Tensor, None]:
        positions, gradients = ctx.saved_tensors
        if not gradients.numel():
            raise InputError("the plan computes no gradients; make it with gradient=True")
        return _Slopes.apply(outer, positions, gradients), None


class _Slopes(torch.autograd.Function):  # type: ignore[misc]
    """The gradient of whatever depends on energies, with the positions as an input, so that it ends here."""

    @staticmethod
    def forward(outer: torch.Tensor, positions: torch.Tensor, gradients: torch.Tensor) -> torch.Tensor:
        return outer[..., None, None] * gradients

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, outer: torch.Tensor) -> None:
        raise InputError("second derivatives of energies are not computed; differentiate once, or by differences")
