"""Predicted models relaxed as AlphaFold and ColabFold do it, with a report of what was wrong before and after."""

from __future__ import annotations

import time
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

from ..common.arguments import callback, flag, whole_number
from ..common.modules import lazy_names, make_callable
from ..minimize.minimizer import Watch
from .presets import PROTOCOLS, Protocol, protocol_of
from .result import RelaxResult, Round, counts
from .rounds import Rounds
from .topologies import Topologies
from .violations import Violation, Violations

if TYPE_CHECKING:
    from ..opencl.device import Device

__all__ = ["PROTOCOLS", "Protocol", "RelaxResult", "Relaxer", "Round", "Violation", "Violations", "counts", "relax"]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "hydrogens": "completed tautomers",
            "placing": "Placing",
            "stereochemistry": "residue_bounds",
        },
    )


class Relaxer:
    """Relaxation of models; models of one sequence are prepared once.

    protocol : "alphafold", "colabfold", or a Protocol
    close_gaps : whether residues that follow each other are bonded however far apart they are; by default there is
        a gap if C is more than 4 A from the next N, and a note
    max_iterations : of a model, in all its rounds; by default as the protocol has it
    precision, device : as in `minimize`

    Raises InputError for values that do not exist.
    """

    @former_keywords(like="protocol")
    def __init__(
        self,
        protocol: str | Protocol = "alphafold",
        *,
        close_gaps: bool = False,
        max_iterations: int | None = None,
        precision: str = "float32",
        device: Device | int | str | None = None,
    ) -> None:
        flag("close_gaps", close_gaps)
        chosen = protocol_of(protocol)
        if max_iterations is not None:
            most = whole_number("max_iterations", max_iterations, least=1, most=1 << 24)
            chosen = replace(chosen, iterations_in_all=most)
        self._rounds = Rounds(chosen, precision, device)
        self._topologies = Topologies(close_gaps)

    def relax(self, path: str | PathLike[str], *, watch: Watch | None = None) -> RelaxResult:
        """Relax the first model of a .pdb or .cif file; errors as of `relax`.

        watch : called as by `Minimizer.minimize_batch`, with the rms gradient of the round under way
        """
        callback("watch", watch)
        begin = time.perf_counter()
        model = self._topologies.read(path)
        return self._rounds.relaxed(model, str(path), time.perf_counter() - begin, watch)


def relax(
    path: str | PathLike[str], like: str | Protocol = "alphafold", *, close_gaps: bool = False,
    max_iterations: int | None = None, precision: str = "float32", device: Device | int | str | None = None,
) -> RelaxResult:  # fmt: skip
    """Relax a predicted model: Amber99SB in vacuum, heavy atoms restrained, and rounds that free what is wrong.

    Use Relaxer for many models; models of one sequence are then prepared once.

    path : a .pdb or .cif file; hydrogens that it lacks are added, other atoms too where PDBFixer is installed
    like : "alphafold", or "colabfold", which ends a round after 2,000 iterations; or a Protocol
    close_gaps, max_iterations : as of Relaxer
    precision, device : as in `minimize`

    Raises FormatError and ParameterError for what is no protein that Amber99SB knows. Raises InputError for options
    that do not exist, for a model that cannot be minimised, and if PDBFixer is lacking.
    """
    relaxer = Relaxer(like, close_gaps=close_gaps, max_iterations=max_iterations, precision=precision, device=device)
    return relaxer.relax(path)


make_callable(__name__)
