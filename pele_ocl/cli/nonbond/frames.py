"""Energies over pair lists of the frames of a trajectory."""

from __future__ import annotations

from pathlib import Path

from ...inputfile import read_file
from ...jobs import NonbondSpec
from ...jobs.reading import molecule_of
from ...trajectories.listing import listing_anew
from ..frames import FrameWork


def frame_work(spec: NonbondSpec, path: Path) -> FrameWork:
    """The work on frames: over one list for all of them, or over the pairs within reach in each."""
    molecule = molecule_of(read_file(path), spec.reading, spec.models)
    plan = spec.plan(molecule.atoms, spec.pairs_of(molecule.atoms))
    if isinstance(spec.pairs, Path) or spec.pairs == "all":
        of = {"pairs": "of a file" if isinstance(spec.pairs, Path) else "all"}
        return FrameWork("Nonbonded", molecule.source, plan, of, chosen=molecule.chosen)
    words = {
        "cutoff": spec.cutoff, "no_cutoff": False, "split_cutoffs": spec.pairs == "split", "one_four": spec.one_four,
    }  # fmt: skip
    evaluate = listing_anew(plan, spec.pairs_of, lambda atoms, pairs: spec.plan(atoms, pairs, first=molecule.atoms))
    return FrameWork("Nonbonded", molecule.source, plan, words, evaluate, molecule.chosen)
