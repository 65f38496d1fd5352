"""Conversion of virtual sites and constraints of an OpenMM System."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...atoms import Ints, VirtualSites
from ...atoms.sites import MOST_PARENTS, SiteRule
from ...common.errors import InputError
from ...common.extras import extra
from .forces import A_PER_NM

if TYPE_CHECKING:
    from openmm import System


def sites_of(system: System) -> VirtualSites | None:
    """Convert the virtual sites of a System. Raises InputError for unsupported types."""
    return VirtualSites.of(list(_rules(system)))


def _rules(system: System) -> Iterator[SiteRule]:
    openmm = extra("openmm", "an OpenMM System")
    for k in range(system.getNumParticles()):
        if not system.isVirtualSite(k):
            continue
        site: Any = system.getVirtualSite(k)
        parents = [site.getParticle(j) for j in range(site.getNumParticles())]
        if isinstance(site, openmm.TwoParticleAverageSite | openmm.ThreeParticleAverageSite):
            yield SiteRule(k, parents, [site.getWeight(j) for j in range(len(parents))])
        elif isinstance(site, openmm.OutOfPlaneSite):
            second, third = site.getWeight12(), site.getWeight13()
            origin = [1 - second - third, second, third]
            yield SiteRule(k, parents, origin, [-1, 1, 0], [-1, 0, 1], site.getWeightCross() / A_PER_NM)
        elif isinstance(site, openmm.LocalCoordinatesSite) and len(parents) <= MOST_PARENTS:
            local = [A_PER_NM * value for value in _plain(site.getLocalPosition())]
            yield SiteRule(k, parents, site.getOriginWeights(), site.getXWeights(), site.getYWeights(), 0.0, local)
        else:
            raise InputError(
                f"particle {k} is a virtual site of the type {type(site).__name__} with {len(parents)} parents, which "
                "is not supported; use averages of two or three particles, OutOfPlaneSite, or LocalCoordinatesSite "
                f"of up to {MOST_PARENTS}"
            )


def _plain(vector: Any) -> list[float]:
    """Return the components (3,) of a Vec3 or Quantity in nm."""
    unit = extra("openmm", "an OpenMM System").unit
    plain = vector.value_in_unit(unit.nanometer) if hasattr(vector, "value_in_unit") else vector
    return [float(value) for value in plain]


def rigid_pairs_of(system: System, held: Ints) -> Ints:
    """Return the constrained pairs (k, 2) without a bond energy. held : (m, 2) pairs with a bond energy"""
    pairs = [sorted(system.getConstraintParameters(k)[:2]) for k in range(system.getNumConstraints())]
    known = set(map(tuple, np.sort(held, axis=1).tolist()))
    return np.array(sorted({(i, j) for i, j in pairs} - known), np.int32).reshape(-1, 2)
