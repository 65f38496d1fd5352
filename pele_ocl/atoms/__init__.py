"""Molecules: atoms with force-field parameters, atom and residue names, structures read from files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names

if TYPE_CHECKING:  # the names below, for type checkers and editors
    from .atoms import Atoms, given_default_radii, noted, placed, require_atoms, selectable, with_default_set
    from .bond_paths import exclusions
    from .bonded import (
        Angles,
        Bonded,
        Bonds,
        CMaps,
        HarmonicImpropers,
        Impropers,
        LennardJonesPairs,
        OneFourPairs,
        TermTable,
        Torsions,
        UreyBradley,
    )
    from .corresponding import Correspondence, correspondence, counterparts
    from .default_radii import DefaultRadii
    from .labels import Floats, Ints, Labels, Residue, Strings, Structure, labels_of
    from .radii import BONDI_SETS, RADII_SETS, element_rule, elements_of, hct_scale, radii_set
    from .sites import VirtualSites
    from .taken import Taken
    from .topology import Topology
    from .undone import UndonePairs

__all__ = [
    "BONDI_SETS",
    "RADII_SETS",
    "Angles",
    "Atoms",
    "Bonded",
    "Bonds",
    "CMaps",
    "Correspondence",
    "DefaultRadii",
    "Floats",
    "HarmonicImpropers",
    "Impropers",
    "Ints",
    "Labels",
    "LennardJonesPairs",
    "OneFourPairs",
    "Residue",
    "Strings",
    "Structure",
    "Taken",
    "TermTable",
    "Topology",
    "Torsions",
    "UndonePairs",
    "UreyBradley",
    "VirtualSites",
    "correspondence",
    "counterparts",
    "element_rule",
    "elements_of",
    "exclusions",
    "given_default_radii",
    "hct_scale",
    "labels_of",
    "noted",
    "placed",
    "radii_set",
    "require_atoms",
    "selectable",
    "with_default_set",
]

if not TYPE_CHECKING:  # names of each module
    __getattr__ = lazy_names(
        __name__,
        {
            "atoms": "Atoms given_default_radii noted placed require_atoms selectable with_default_set",
            "bond_paths": "exclusions",
            "bonded": "Angles Bonded Bonds CMaps HarmonicImpropers "
            "Impropers LennardJonesPairs OneFourPairs TermTable Torsions UreyBradley",
            "corresponding": "Correspondence correspondence counterparts",
            "default_radii": "DefaultRadii",
            "labels": "Floats Ints Labels Residue Strings Structure labels_of",
            "radii": "BONDI_SETS RADII_SETS element_rule elements_of hct_scale radii_set",
            "sites": "VirtualSites",
            "taken": "Taken",
            "topology": "Topology",
            "undone": "UndonePairs",
        },
    )
