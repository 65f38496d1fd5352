"""Energies as differentiable torch functions: `pele_ocl.torch.energies(plan, positions)`.

Needs torch: pip install 'pele-ocl[torch]'.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .common.errors import InputError
from .common.extras import extra
from .energy import Energy
from .ensemble import Ensemble
from .ensemble.state import RowsLike
from .ensemble.tensors import Failed, Tensors
from .nonbond import Nonbond

try:
    import torch as _torch
except ImportError:
    _torch = None

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["energies"]


def energies(
    plan: Energy | Nonbond | Ensemble, positions: Tensor, *, failed: Failed = "raise", rows: RowsLike = None
) -> Tensor:
    """Compute energies of positions, differentiable once. The gradient is computed together with the energy.

    plan : with gradients if the positions require them; precision="float64" passes torch.autograd.gradcheck. The rows
        of an Ensemble keep the positions of the last evaluation
    positions : (n, 3) or (..., n, 3) A, float32 or float64, on any device of torch; integers become torch's default
        type. With an Ensemble, conformation k is computed by row k modulo the number of rows, with its restraints and
        scales. For an Ensemble of several molecules the atoms of its rows are concatenated, (..., sum of n, 3), as in
        batches of graphs
    failed : result for a conformation that cannot be computed, e.g. because of overlapping atoms: "raise" for an
        InputError, "nan" for an energy and a gradient of NaN, "inf" for an energy of +inf and a gradient of 0
    rows : of an Ensemble to use, in this order; by default all

    Returns (...,) kcal/mol, with the dtype and on the device of the positions; (..., n_rows) for several molecules.
    CPU tensors are not copied. `torch.func.grad`, `vmap` and `jvp` are supported. `torch.compile` treats the function
    as a single operator, also with fullgraph=True; compiled code supports `vmap`, but not `torch.func.grad` and `jvp`.
    Raises InputError for other shapes and types, failed conformations, second derivatives, and if torch is missing.
    """
    if _torch is not None and _torch.compiler.is_compiling():
        found, _ = _operator(positions, _number(plan, rows, failed))
    else:
        found, _ = _differentiable().apply(_checked(positions), Tensors.of(plan, rows, failed))
    result: Tensor = found
    return result


def _checked(positions: Tensor) -> Tensor:
    """Convert positions to a supported type. Raises InputError if this is not possible."""
    torch = extra("torch", "a function for torch")
    if not isinstance(positions, torch.Tensor) or positions.ndim < 2:
        raise InputError("positions are not a tensor of shape (n, 3) or (..., n, 3)")
    if not positions.is_floating_point() and not positions.is_complex() and positions.dtype != torch.bool:
        return positions.to(torch.get_default_dtype())
    if positions.dtype not in (torch.float32, torch.float64):
        kind = str(positions.dtype).removeprefix("torch.")
        raise InputError(f"positions are of type {kind}; expected float32 or float64")
    return positions


def _computed(of: Tensors, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Return energies, and gradients (..., n, 3), which are empty if not computed."""
    torch = extra("torch", "a function for torch")
    total, gradients = of.evaluated(positions.detach().cpu().numpy())
    slopes = np.zeros((*positions.shape[:-2], 0, 3)) if gradients is None else gradients
    return torch.from_numpy(total).to(positions), torch.from_numpy(slopes).to(positions)


def _scaled(of: Tensors, outer: Tensor, gradients: Tensor) -> Tensor:
    """Multiply gradients by the gradients with respect to energies."""
    torch = extra("torch", "a function for torch")
    if of.owners is None:
        return outer[..., None, None] * gradients
    return outer.index_select(-1, torch.from_numpy(of.owners).to(outer.device))[..., None] * gradients


_SECOND = "second derivatives of energies are not supported; differentiate once, or use finite differences"


@cache
def _differentiable() -> Any:
    """Create the differentiable function of positions and Tensors, when torch is first needed."""
    torch: Any = extra("torch", "a function for torch")

    class Energies(torch.autograd.Function):  # type: ignore[misc]
        """Energies (...,) and their gradients (..., n, 3), from one evaluation."""

        @staticmethod
        def forward(positions: Tensor, of: Tensors) -> tuple[Tensor, Tensor]:
            return _computed(of, positions)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
            ctx.save_for_backward(inputs[0], output[1])
            ctx.save_for_forward(output[1])
            ctx.mark_non_differentiable(output[1])
            ctx.of = inputs[1]

        @staticmethod
        def backward(ctx: Any, outer: Tensor, _: object) -> tuple[Tensor, None]:
            positions, gradients = ctx.saved_tensors
            ctx.of.require_gradient()
            return Slopes.apply(outer, positions, gradients, ctx.of), None

        @staticmethod
        def jvp(ctx: Any, change: Tensor, *_: object) -> tuple[Tensor, None]:
            (gradients,) = ctx.saved_tensors
            ctx.of.require_gradient()
            of_atoms = (change * gradients).sum(-1)
            if ctx.of.owners is None:
                return of_atoms.sum(-1), None
            zeros = of_atoms.new_zeros((*of_atoms.shape[:-1], len(ctx.of.rows)))
            return zeros.index_add(-1, torch.from_numpy(ctx.of.owners).to(of_atoms.device), of_atoms), None

        @staticmethod
        def vmap(
            info: Any, places: tuple[int | None, ...], positions: Tensor, of: Tensors
        ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
            """Evaluate all elements together."""
            assert places[0] is not None
            energies, gradients = Energies.apply(positions.movedim(places[0], 0), of)
            return (energies, gradients), (0, 0)

    class Slopes(torch.autograd.Function):  # type: ignore[misc]
        """Gradient of a function of energies. Positions are an input, so that second derivatives raise an error."""

        generate_vmap_rule = True

        @staticmethod
        def forward(outer: Tensor, positions: Tensor, gradients: Tensor, of: Tensors) -> Tensor:
            return _scaled(of, outer, gradients)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, outer: Tensor) -> None:
            raise InputError(_SECOND)

    return Energies


_COMPILED: list[Tensors] = []  # referenced by index in compiled code


def _number_of(plan: Energy | Nonbond | Ensemble, rows: RowsLike, failed: Failed) -> int:
    """Return the index of Tensors in _COMPILED; new ones are appended."""
    of = Tensors.of(plan, rows, failed)
    if of not in _COMPILED:
        _COMPILED.append(of)
    return _COMPILED.index(of)


def _made_operator(torch: Any) -> Any:
    """Create the operator called by compiled code."""

    def computed(positions: Any, number: int) -> Any:
        return _computed(_COMPILED[number], _checked(positions))

    def shaped(positions: Tensor, number: int) -> tuple[Tensor, Tensor]:
        of, given = _COMPILED[number], _checked(positions)
        slopes = given.shape if of.has_gradient else (*given.shape[:-2], 0, 3)
        return given.new_empty(of.energies_shape(tuple(given.shape))), given.new_empty(slopes)

    def keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(output[1])
        ctx.of = _COMPILED[inputs[1]]

    def backward(ctx: Any, outer: Tensor, of_gradients: Tensor | None) -> tuple[Tensor, None]:
        if of_gradients is not None:
            raise InputError(_SECOND)
        ctx.of.require_gradient()
        return _scaled(ctx.of, outer, ctx.saved_tensors[0]), None

    def batched(info: Any, places: tuple[int | None, ...], positions: Tensor, number: int) -> Any:
        assert places[0] is not None
        return made(positions.movedim(places[0], 0), number), (0, 0)

    schema = "(Tensor positions, int number) -> (Tensor, Tensor)"
    made = torch.library.custom_op("pele_ocl::energies", computed, mutates_args=(), schema=schema)
    made.register_fake(shaped)
    made.register_autograd(backward, setup_context=keep)
    made.register_vmap(batched)
    return made


if _torch is not None:  # at import, because the compiler would trace its creation
    _operator = _made_operator(_torch)
    _number = _torch.compiler.assume_constant_result(_number_of)
