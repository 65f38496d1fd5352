"""Energies as JAX functions that support jit, vmap and grad: `pele_ocl.jax.energies(plan, positions)`.

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
from .ensemble import Ensemble
from .ensemble.state import RowsLike
from .ensemble.tensors import Failed, Tensors
from .nonbond import Nonbond

if TYPE_CHECKING:
    from jax import Array

__all__ = ["energies"]


def energies(
    plan: Energy | Nonbond | Ensemble, positions: ArrayLike, *, failed: Failed = "raise", rows: RowsLike = None
) -> Array:
    """Compute energies of positions, differentiable once in reverse mode, also under jit and vmap.

    plan : with gradients; `partial(energies, plan)` is a function of positions only. The rows of an Ensemble keep the
        positions of the last evaluation
    positions : (..., n, 3) A, float32 or float64; all leading axes are evaluated together, including those of vmap.
        Integers become JAX's default type. With an Ensemble, conformation k is computed by row k modulo the number of
        rows, with its restraints and scales. For an Ensemble of several molecules the atoms of its rows are
        concatenated, (..., sum of n, 3)
    failed : result for a conformation that cannot be computed, e.g. because of overlapping atoms: "raise" for an error,
        "nan" for an energy and a gradient of NaN, "inf" for an energy of +inf and a gradient of 0
    rows : of an Ensemble to use, in this order; by default all

    Returns (...,) kcal/mol with the dtype of the positions, which is float32 unless jax_enable_x64 is set; (...,
    n_rows) for several molecules. Raises InputError for other shapes and types, a plan without gradients, second
    derivatives, and if JAX is missing. JAX wraps errors of conformations in its own exception.
    """
    jax: Any = extra("jax", "a function for JAX")
    of = Tensors.of(plan, rows, failed)
    try:
        given = jax.numpy.asarray(positions)
    except (TypeError, ValueError) as error:
        raise InputError(f"positions are not an array of numbers: {str(error).splitlines()[0]}") from None
    if jax.numpy.issubdtype(given.dtype, jax.numpy.integer):
        given = given.astype(float)
    if given.dtype not in (np.float32, np.float64):
        raise InputError(f"positions are of type {given.dtype}; expected float32 or float64")
    found: Array = _differentiable()(of, given)
    return found


@cache
def _differentiable() -> Any:
    """Create the differentiable function of Tensors and positions, when JAX is first needed."""
    jax: Any = extra("jax", "a function for JAX")
    custom = partial(jax.custom_vjp, nondiff_argnums=(0,))

    @custom
    def evaluate(of: Tensors, positions: Array) -> tuple[Array, Array]:
        """Return energies and gradients (..., n, 3), from one host callback."""
        shape, dtype = positions.shape, positions.dtype
        results = jax.ShapeDtypeStruct(of.energies_shape(shape), dtype), jax.ShapeDtypeStruct(shape, dtype)
        of.require_gradient()

        def call(given: object) -> tuple[Any, Any]:
            total, gradients = of.evaluated(np.asarray(given))
            assert gradients is not None
            return total.astype(dtype), gradients.astype(dtype)

        found: tuple[Array, Array] = jax.pure_callback(call, results, positions, vmap_method="broadcast_all")
        return found

    @custom
    def energies_of(of: Tensors, positions: Array) -> Array:
        return evaluate(of, positions)[0]

    def slopes(of: Tensors, gradients: Array, outer: Array) -> tuple[Array]:
        each = outer[..., None] if of.owners is None else outer[..., of.owners]
        return (each[..., None] * gradients,)

    def refuse(of: Tensors, _: None, outer: object) -> None:
        raise InputError(
            "second derivatives of energies are not supported; differentiate once, or use finite differences"
        )

    energies_of.defvjp(evaluate, slopes)
    evaluate.defvjp(lambda of, positions: (evaluate(of, positions), None), refuse)
    return energies_of
