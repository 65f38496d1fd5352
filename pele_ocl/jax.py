"""Energies as functions of JAX's arrays, under jit, vmap and grad: `pele_ocl.jax.energies(plan, positions)`.

Needs JAX: pip install 'pele-ocl[jax]'.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .common.errors import InputError
from .common.extras import extra
from .energy import Energy
from .nonbond import Nonbond

if TYPE_CHECKING:
    from jax import Array

__all__ = ["energies"]


def energies(plan: Energy | Nonbond, positions: ArrayLike) -> Array:
    """Energies of positions, differentiable once in reverse, as grad and value_and_grad do, under jit and vmap, too.

    plan : with gradients; `partial(energies, plan)` is the function of positions alone
    positions : (..., n, 3) A; all leading axes are evaluated together, axes of vmap among them

    Returns (...,) kcal/mol of the type of the positions, which is float32 unless jax_enable_x64 is set. Raises
    InputError for other shapes, a plan without gradients, second derivatives, and if JAX is missing. If conformations
    fail, JAX wraps the error in one of its own.
    """
    found: Array = _differentiable()(plan, positions)
    return found


@cache
def _differentiable() -> Any:
    """Make the function of a plan and positions that JAX differentiates, when JAX is first needed."""
    jax: Any = extra("jax", "a function for JAX")
    custom = partial(jax.custom_vjp, nondiff_argnums=(0,))

    @custom
    def evaluated(plan: Energy | Nonbond, positions: Array) -> tuple[Array, Array]:
        """Energies (...,) and gradients (..., n, 3), from one call of the host."""
        shape, dtype = positions.shape, positions.dtype
        _check(plan, shape)

        def evaluate(given: object) -> tuple[Any, Any]:
            there = np.asarray(given)
            batch = plan.evaluate_batch(there.reshape(-1, *shape[-2:]))
            assert batch.gradients is not None
            gradients = batch.gradients.reshape(there.shape)
            return batch.total.reshape(there.shape[:-2]).astype(dtype), gradients.astype(dtype)

        results = jax.ShapeDtypeStruct(shape[:-2], dtype), jax.ShapeDtypeStruct(shape, dtype)
        found: tuple[Array, Array] = jax.pure_callback(evaluate, results, positions, vmap_method="broadcast_all")
        return found

    @custom
    def energies_of(plan: Energy | Nonbond, positions: Array) -> Array:
        return evaluated(plan, positions)[0]

    def slopes(plan: Energy | Nonbond, gradients: Array, outer: Array) -> tuple[Array]:
        return (outer[..., None, None] * gradients,)

    def refuse(plan: Energy | Nonbond, _: None, outer: object) -> None:
        raise InputError("second derivatives of energies are not computed; differentiate once, or by differences")

    energies_of.defvjp(lambda plan, positions: evaluated(plan, positions), slopes)
    evaluated.defvjp(lambda plan, positions: (evaluated(plan, positions), None), refuse)
    return energies_of


def _check(plan: Energy | Nonbond, shape: tuple[int, ...]) -> None:
    """Raise InputError for positions of other shapes and plans without gradients."""
    if shape[-2:] != (len(plan.atoms), 3):
        raise InputError(f"positions have shape {shape}; (..., {len(plan.atoms)}, 3) is needed")
    if not (plan.options.gradient if isinstance(plan, Energy) else plan.gradient):
        raise InputError("the plan computes no gradients; make it with gradient=True")
