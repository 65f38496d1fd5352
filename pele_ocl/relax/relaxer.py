"""Relaxation of many models, prepared once per sequence."""

from __future__ import annotations

import time
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

from ..common.arguments import callback, flag, former_keywords, whole_number
from ..minimize.minimizer import Watch
from .presets import Protocol, protocol_of
from .result import RelaxResult
from .rounds import Rounds
from .topologies import Topologies

if TYPE_CHECKING:
    from ..opencl.device import Device


class Relaxer:
    """Relaxes models; those with the same sequence are prepared once.

    protocol : "alphafold", "colabfold", or a Protocol
    close_gaps : whether consecutive residues are bonded at any distance; by default a distance of more than 4 A from C
        to the next N is a gap, with a note
    max_iterations : maximum number of iterations per model in all rounds; by default that of the protocol
    precision, device : as in `minimize`

    Raises InputError for unknown values.

    >>> relaxer = pele_ocl.Relaxer(max_iterations=2)
    >>> relaxer.relax("data/structures/trialanine.pdb").total < 0
    True
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
        """Relax the first model of a .pdb or .cif file; raises the same errors as `relax`.

        watch : called as in `Minimizer.minimize_batch`, with the rms gradient of the current round

        >>> pele_ocl.Relaxer("colabfold", max_iterations=2).relax("data/structures/trialanine.pdb").is_clean
        True
        """
        callback("watch", watch)
        begin = time.perf_counter()
        model = self._topologies.read(path)
        return self._rounds.relaxed(model, str(path), time.perf_counter() - begin, watch)
