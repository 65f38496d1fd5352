"""Names of pele_ocl.reading under the place that they had; they go with the next release."""

from __future__ import annotations

from ..reading import Chosen as Chosen
from ..reading import Models as Models
from ..reading import MoleculeRead as MoleculeRead
from ..reading import Reading as Reading
from ..reading import molecule_of as molecule_of
from ..reading import require_lennard_jones as require_lennard_jones

Reads = Reading
