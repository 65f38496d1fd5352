"""The radius function of a GB model as kernels take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..solvent_model import SolventModel

if TYPE_CHECKING:
    from ..opencl.kernels import Run


def radius_macros(model: SolventModel) -> dict[str, int]:
    """The build definitions that select it, for every kernel that computes Born radii."""
    return {}


def radius_constants(run: Run, model: SolventModel) -> Any:
    """Its constants: alpha, beta, gamma, offset."""
    return run.vector4(model.alpha, model.beta, model.gamma, model.offset)
