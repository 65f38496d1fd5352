"""Settings of electrostatic potentials; lines about them and about energies are the library's."""

from __future__ import annotations

from ..jobs.texts import Facts as Facts
from ..jobs.texts import forcefield_line as forcefield_line
from ..jobs.texts import lines_of as lines_of
from ..jobs.texts import medium_lines as medium_lines
from ..jobs.texts import physics_lines as physics_lines
from ..jobs.texts import solvent_text as solvent_text
