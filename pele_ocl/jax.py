"""Energies as functions of JAX's arrays, under jit, vmap and grad: `pele_ocl.jax.energies(plan, positions)`.

Needs JAX: pip install 'pele-ocl[jax]'.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .common.arguments import choice
from .common.errors import InputError
from .common.extras import extra
from .energy import Energy
from .nonbond import Nonbond
from .plan.tensors import Failed, evaluated

if TYPE_CHECKING:
    from jax import Array

__all__ = ["energies"]


def energies(plan: Energy | Nonbond, positions: ArrayLike, *, failed: Failed = "raise") -> Array:
    """Energies of positions, differentiable once in reverse, as grad and value_and_grad do, under jit and vmap, too.

    plan : with gradients; `partial(energies, plan)` is the function of positions alone
    positions : (..., n, 3) A, float32 or float64; all leading axes are evaluated together, axes of vmap among them.
        Integers become JAX's default type
    failed : what a conformation gets that cannot be computed, such as one of atoms on top of each other: "raise" for an
        error, "nan" for an energy and a gradient of NaN, "inf" for an energy of +inf and a gradient of 0

    Returns (...,) kcal/mol of the type of the positions, which is float32 unless jax_enable_x64 is set. Raises
    InputError for other shapes and types, a plan without gradients, second derivatives, and if JAX is missing. JAX
    wraps errors of conformations in one of its own.
    """
    jax: Any = extra("jax", "a function for JAX")
    choice("failed", failed, ("raise", "nan", "inf"))
    given = jax.numpy.asarray(positions)
    if jax.numpy.issubdtype(given.dtype, jax.numpy.integer):
        given = given.astype(float)
    if given.dtype not in (np.float32, np.float64):
        raise InputError(f"positions are of type {given.dtype}; float32 or float64 is needed")
    found: Array = _differentiable()(plan, failed, given)
    return found


@cache
def _differentiable() -> Any:
    """Make the function of a plan and positions that JAX differentiates, when JAX is first needed."""
    jax: Any = extra("jax", "a function for JAX")
    custom = partial(jax.custom_vjp, nondiff_argnums=(0, 1))

    @custom
    def evaluate(plan: Energy | Nonbond, failed: Failed, positions: Array) -> tuple[Array, Array]:
        """Energies (...,) and gradients (..., n, 3), from one call of the host."""
        shape, dtype = positions.shape, positions.dtype
        _check(plan, shape)

        def call(given: object) -> tuple[Any, Any]:
            total, gradients = evaluated(plan, np.asarray(given), failed)
            assert gradients is not None
            return total.astype(dtype), gradients.astype(dtype)

        results = jax.ShapeDtypeStruct(shape[:-2], dtype), jax.ShapeDtypeStruct(shape, dtype)
        found: tuple[Array, Array] = jax.pure_callback(call, results, positions, vmap_method="broadcast_all")
        return found

    @custom
    def energies_of(plan: Energy | Nonbond, failed: Failed, positions: Array) -> Array:
        return evaluate(plan, failed, positions)[0]

    def slopes(plan: Energy | Nonbond, failed: Failed, gradients: Array, outer: Array) -> tuple[Array]:
        return (outer[..., None, None] * gradients,)

    def refuse(plan: Energy | Nonbond, failed: Failed, _: None, outer: object) -> None:
        raise InputError("second derivatives of energies are not computed; differentiate once, or by differences")

    energies_of.defvjp(evaluate, slopes)
    evaluate.defvjp(lambda plan, failed, positions: (evaluate(plan, failed, positions), None), refuse)
    return energies_of


def _check(plan: Energy | Nonbond, shape: tuple[int, ...]) -> None:
    """Raise InputError for positions of other shapes and plans without gradients."""
    if shape[-2:] != (len(plan.atoms), 3):
        raise InputError(f"positions have shape {shape}; (..., {len(plan.atoms)}, 3) is needed")
    if not (plan.options.gradient if isinstance(plan, Energy) else plan.gradient):
        raise InputError("the plan computes no gradients; make it with gradient=True")
