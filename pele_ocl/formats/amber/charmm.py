"""Sections that topologies of CHARMM's force fields have beside AMBER's own, and the CMAP terms of both."""

from __future__ import annotations

import numpy as np

from ...atoms import CMaps, Floats, HarmonicImpropers, UreyBradley
from ...errors import FormatError
from .counts import Counts
from .sections import Sections
from .terms import read_parameters, read_terms

_LARGEST_MAP = 1000  # points a side


def read_urey_bradley(sections: Sections, counts: Counts) -> UreyBradley:
    """The Urey-Bradley terms; none where the file has no section of them."""
    if "CHARMM_UREY_BRADLEY_COUNT" not in sections:
        return UreyBradley()
    n_terms, n_types = _numbers_of(sections, "CHARMM_UREY_BRADLEY_COUNT", 2)
    terms = read_terms(sections, counts, [("CHARMM_UREY_BRADLEY", n_terms)], 2, n_types, numbered=True)
    names = ("CHARMM_UREY_BRADLEY_FORCE_CONSTANT", "CHARMM_UREY_BRADLEY_EQUIL_VALUE")
    return UreyBradley(terms.atoms, read_parameters(sections, names, n_types, terms))


def read_harmonic_impropers(sections: Sections, counts: Counts) -> HarmonicImpropers:
    """CHARMM's impropers; none where the file has no section of them.

    Their angles are in radians; old versions of ParmEd wrote degrees, which a value beyond a turn tells.
    """
    if "CHARMM_NUM_IMPROPERS" not in sections:
        return HarmonicImpropers()
    (n_terms,) = _numbers_of(sections, "CHARMM_NUM_IMPROPERS", 1)
    (n_types,) = _numbers_of(sections, "CHARMM_NUM_IMPR_TYPES", 1)
    terms = read_terms(sections, counts, [("CHARMM_IMPROPERS", n_terms)], 4, n_types, numbered=True)
    names = ("CHARMM_IMPROPER_FORCE_CONSTANT", "CHARMM_IMPROPER_PHASE")
    parameters = read_parameters(sections, names, n_types, terms)
    if (np.abs(parameters[:, 1]) > 2 * np.pi).any():
        parameters[:, 1] = np.radians(parameters[:, 1])
    return HarmonicImpropers(terms.atoms, parameters)


def read_cmaps(sections: Sections, counts: Counts) -> tuple[CMaps, tuple[Floats, ...]]:
    """The CMAP terms of ff19SB or CHARMM and their maps; none where the file has no section of them."""
    prefix = next((prefix for prefix in ("", "CHARMM_") if f"{prefix}CMAP_COUNT" in sections), None)
    if prefix is None:
        return CMaps(), ()
    n_terms, n_maps = _numbers_of(sections, f"{prefix}CMAP_COUNT", 2)
    sizes = sections.whole_numbers(f"{prefix}CMAP_RESOLUTION", n_maps)
    wrong = (sizes < 2) | (sizes > _LARGEST_MAP) | (sizes % 2 != 0)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise FormatError(
            f"{sections.at(f'{prefix}CMAP_RESOLUTION', k)}: map {k + 1} has {sizes[k]} points a side; an even number "
            f"of 2 to {_LARGEST_MAP} is needed"
        )
    maps = tuple(_map(sections, f"{prefix}CMAP_PARAMETER_{k:02d}", size) for k, size in enumerate(sizes.tolist(), 1))
    terms = read_terms(sections, counts, [(f"{prefix}CMAP_INDEX", n_terms)], 5, n_maps, numbered=True)
    atoms = terms.atoms[:, [0, 1, 2, 3, 1, 2, 3, 4]]  # two torsions that share three atoms
    return CMaps(atoms, terms.types[:, None].astype(np.float64)), maps


def _map(sections: Sections, name: str, size: int) -> Floats:
    """A map from 0 upwards; the file's begins at -180 degrees."""
    return np.roll(sections.numbers(name, size**2).reshape(size, size), (-size // 2, -size // 2), (0, 1))


def _numbers_of(sections: Sections, name: str, count: int) -> list[int]:
    """The numbers of things that a section states."""
    values = sections.whole_numbers(name, count)
    if values.min() < 0:
        raise FormatError(f"{sections.at(name, int(np.argmin(values)))}: {values.min()} things cannot be")
    return [int(value) for value in values]
