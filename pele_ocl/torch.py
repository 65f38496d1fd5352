"""Energies as functions of tensors, which torch differentiates: `pele_ocl.torch.energies(plan, positions)`.

Needs torch: pip install 'pele-ocl[torch]'.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .common.arguments import choice
from .common.errors import InputError
from .common.extras import extra
from .energy import Energy
from .nonbond import Nonbond
from .plan.tensors import Failed, evaluated

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["energies"]


def energies(plan: Energy | Nonbond, positions: Tensor, *, failed: Failed = "raise") -> Tensor:
    """Energies of positions, differentiable once: the gradient is computed along with them.

    plan : with gradients if the positions require them; precision="float64" passes torch.autograd.gradcheck
    positions : (n, 3) or (m, n, 3) A, float32 or float64, on any device of torch; integers become torch's default type
    failed : what a conformation gets that cannot be computed, such as one of atoms on top of each other: "raise" for an
        InputError, "nan" for an energy and a gradient of NaN, "inf" for an energy of +inf and a gradient of 0

    Returns () or (m,) kcal/mol, of the type and on the device of the positions. Memory is shared with a CPU's tensors.
    `torch.func.grad`, `vmap` and `jvp` take the function. `torch.compile` calls it as it is, between what it compiles.
    Raises InputError for other shapes and types, where conformations fail, for second derivatives, and if torch is
    missing.
    """
    if not _UNCOMPILED:
        _UNCOMPILED["energies"] = extra("torch", "a function for torch").compiler.disable(_energies)
    found: Tensor = _UNCOMPILED["energies"](plan, positions, failed)
    return found


_UNCOMPILED: dict[str, Any] = {}  # made when torch is there


def _energies(plan: Energy | Nonbond, positions: Tensor, failed: Failed) -> Tensor:
    torch = extra("torch", "a function for torch")
    if not isinstance(positions, torch.Tensor) or positions.ndim not in (2, 3):
        raise InputError("positions are no tensor of shape (n, 3) or (m, n, 3)")
    choice("failed", failed, ("raise", "nan", "inf"))
    if not positions.is_floating_point() and not positions.is_complex() and positions.dtype != torch.bool:
        positions = positions.to(torch.get_default_dtype())
    if positions.dtype not in (torch.float32, torch.float64):
        kind = str(positions.dtype).removeprefix("torch.")
        raise InputError(f"positions are of type {kind}; float32 or float64 is needed")
    found: Tensor = _differentiable().apply(positions, plan, failed)[0]
    return found


@cache
def _differentiable() -> Any:
    """Make the function of positions and a plan that gives energies and gradients, when torch is first needed."""
    torch: Any = extra("torch", "a function for torch")

    class Energies(torch.autograd.Function):  # type: ignore[misc]
        """Energies (...,) and their gradients (..., n, 3), from one evaluation."""

        @staticmethod
        def forward(positions: Tensor, plan: Energy | Nonbond, failed: Failed) -> tuple[Tensor, Tensor]:
            given = positions.detach().cpu().numpy()
            total, gradients = evaluated(plan, given, failed)
            slopes = np.full(0, np.nan) if gradients is None else gradients
            return torch.from_numpy(total).to(positions), torch.from_numpy(slopes).to(positions)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
            ctx.save_for_backward(inputs[0], output[1])
            ctx.save_for_forward(output[1])
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx: Any, outer: Tensor, _: object) -> tuple[Tensor, None, None]:
            positions, gradients = ctx.saved_tensors
            _require(gradients)
            return Slopes.apply(outer, positions, gradients), None, None

        @staticmethod
        def jvp(ctx: Any, change: Tensor, *_: object) -> tuple[Tensor, None]:
            (gradients,) = ctx.saved_tensors
            _require(gradients)
            return (change * gradients).sum((-2, -1)), None

        @staticmethod
        def vmap(
            info: Any, places: tuple[int | None, ...], positions: Tensor, plan: Energy | Nonbond, failed: Failed
        ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
            """Evaluate all together."""
            assert places[0] is not None
            energies, gradients = Energies.apply(positions.movedim(places[0], 0), plan, failed)
            return (energies, gradients), (0, 0)

    class Slopes(torch.autograd.Function):  # type: ignore[misc]
        """Gradient of a function of energies. Positions are an input, so that differentiation ends here."""

        generate_vmap_rule = True

        @staticmethod
        def forward(outer: Tensor, positions: Tensor, gradients: Tensor) -> Tensor:
            return outer[..., None, None] * gradients

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, outer: Tensor) -> None:
            raise InputError("second derivatives of energies are not computed; differentiate once, or by differences")

    def _require(gradients: Tensor) -> None:
        if not gradients.numel():
            raise InputError("the plan computes no gradients; make it with gradient=True")

    return Energies
