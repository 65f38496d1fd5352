"""Energies as functions of JAX's arrays, under jit, vmap and grad: `pele_ocl.jax.energies(plan, positions)`.

Needs JAX: pip install 'pele-ocl[jax]'.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .energy import Energy
from .errors import InputError
from .extras import missing
from .nonbond import Nonbond

try:
    import jax
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] not in ("jax", "jaxlib"):
        raise
    raise missing("jax", "a function for JAX") from None

__all__ = ["energies"]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def energies(plan: Energy | Nonbond, positions: jax.Array) -> jax.Array:
    """Energies of positions, differentiable once in reverse, as grad and value_and_grad do, under jit and vmap, too.

    plan : with gradients; `partial(energies, plan)` is the function of positions alone
    positions : (..., n, 3) A; all leading axes, those of vmap among them, are evaluated together

    Returns (...,) kcal/mol of the type of the positions, which is float32 unless jax_enable_x64 is set. Raises
    InputError for other shapes, a plan without gradients, and second derivatives; where conformations fail, JAX wraps
    it in an error of its own.
    """
    return _evaluated(plan, positions)[0]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _evaluated(plan: Energy | Nonbond, positions: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Energies (...,) and gradients (..., n, 3), from one call of the host."""
    shape, dtype = positions.shape, positions.dtype
    if shape[-2:] != (len(plan.atoms), 3):
        raise InputError(f"positions have shape {shape}; (..., {len(plan.atoms)}, 3) is needed")
    if not (plan.options.gradient if isinstance(plan, Energy) else plan.gradient):
        raise InputError("the plan computes no gradients; make it with gradient=True")

    def evaluate(given: object) -> tuple[Any, Any]:
        there = np.asarray(given)
        batch = plan.evaluate_batch(there.reshape(-1, *shape[-2:]))
        assert batch.gradients is not None
        return batch.total.reshape(there.shape[:-2]).astype(dtype), batch.gradients.reshape(there.shape).astype(dtype)

    results = jax.ShapeDtypeStruct(shape[:-2], dtype), jax.ShapeDtypeStruct(shape, dtype)
    found: tuple[jax.Array, jax.Array] = jax.pure_callback(evaluate, results, positions, vmap_method="broadcast_all")
    return found


def _slopes(plan: Energy | Nonbond, gradients: jax.Array, outer: jax.Array) -> tuple[jax.Array]:
    return (outer[..., None, None] * gradients,)


def _no_second(plan: Energy | Nonbond, _: None, outer: object) -> tuple[jax.Array]:
    raise InputError("second derivatives of energies are not computed; differentiate once, or by differences")


energies.defvjp(lambda plan, positions: _evaluated(plan, positions), _slopes)
_evaluated.defvjp(lambda plan, positions: (_evaluated(plan, positions), None), _no_second)
