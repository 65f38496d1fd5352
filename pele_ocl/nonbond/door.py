"""The function `nonbond` for files, and for Atoms whose pairs are to be listed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from ..atoms import Atoms, Floats
from ..common.arguments import choice, file_path, is_among
from ..common.errors import KeywordError
from ..common.variant import Progress
from ..doors import Door, Given, matched, paths_of
from ..gb_models.solvent_model import SolventModel
from ..pairs import AllPairs, PairList, Pairs, require_pairs, require_pairs_suffix, writing_pairs
from ..plan.selection import having
from .plan import Nonbond
from .spec import NonbondEvaluation, NonbondSpec

if TYPE_CHECKING:
    from ..opencl.device import Device


def evaluated(
    atoms: Atoms | Given, pairs: Pairs | str | PathLike[str] | None, born_radii: Floats | None, *,
    solvent: Literal["gb", "vacuum"] | None, gradient: bool, variant: str, precision: str,
    device: Device | int | str | None, model: SolventModel | int | None, internal_dielectrics: Floats | None,
    progress: Progress | None,
    cutoff: float | None, one_four: Literal["exclude", "scale"], internal_dielectric: Literal["uniform", "vdgbnp"],
    models: Literal["one", "all"], strict: bool, write_pairs: str | PathLike[str] | None, words: Mapping[str, Any],
    function: Callable[..., Any],
) -> Any:  # fmt: skip
    """Evaluate as `nonbond` does, which is the function."""
    words = _in_vacuum(words, solvent)
    vacuum = "solvent='vacuum'" if solvent == "vacuum" else "gb='none'"
    door = Door.of(function, {**words, "progress": progress}, model, device, vacuum, NonbondSpec)
    is_listed = isinstance(pairs, PairList | AllPairs)
    if cutoff is not None and pairs is not None:
        raise KeywordError("choose one of `pairs` and `cutoff`")
    if internal_dielectric == "vdgbnp" and "solute_dielectric" in words:
        raise KeywordError("`internal_dielectric='vdgbnp'` takes the place of `solute_dielectric`; leave one out")
    if not isinstance(atoms, Atoms):
        given: Given = matched(atoms)
        paths_of(given)  # which refuses what is neither
        atoms = given
    named = is_among(pairs, ("all", "split"))
    if not (pairs is None or named or isinstance(pairs, str | PathLike)):
        require_pairs(pairs)
    kind = "cutoff" if pairs is None or is_listed else pairs if named else None
    spec = NonbondSpec(
        reading=door.reading, models=models, pairs=cast(Any, kind or file_path(pairs, "pairs")), cutoff=cutoff,
        solvent="vacuum" if door.model.gb_model.vacuum else "gb", one_four=one_four,
        variable_dielectric=internal_dielectric == "vdgbnp", gradient=gradient and not door.frames, variant=variant,
        precision=precision, device=door.run.device, model=door.model, strict=strict, **door.own,
    )  # fmt: skip
    if isinstance(atoms, Atoms):
        door.require_atoms()
        listed = pairs if isinstance(pairs, PairList | AllPairs) else spec.pairs_of(atoms)
        plan = spec.plan(atoms, listed)
        if internal_dielectrics is not None:
            plan = having(Nonbond, variant)(
                atoms, listed, solvent=spec.solvent, gradient=gradient, variant=variant, precision=precision,
                device=device, model=door.model, internal_dielectrics=internal_dielectrics,
            )  # fmt: skip
        if door.frames:
            return door.over(plan)
        return plan.evaluate(born_radii=born_radii, profile=True, progress=progress)
    for name, value in ("born_radii", born_radii), ("internal_dielectrics", internal_dielectrics):
        if value is not None:
            raise KeywordError(f"`{name}` are of atoms; give Atoms, which pele_ocl.read makes of a file")
    if is_listed:
        raise KeywordError("a list of pairs is of Atoms; give these, or the path of a list")
    alone = {"models_all": models == "all", "write_pairs": write_pairs}
    if write_pairs is None:
        return door.evaluated(spec, atoms, alone=alone)
    return _with_pairs(door, spec, atoms, file_path(write_pairs, "write_pairs"), alone)


def _with_pairs(door: Door, spec: NonbondSpec, given: Given, target: Path, alone: Mapping[str, object]) -> Any:
    """Evaluate one structure, and write its list of pairs beside the output: both, or none of them."""
    if paths_of(given) is None:
        raise KeywordError("`write_pairs` is for one structure, as each has a list of its own")
    if spec.models == "all":
        raise KeywordError("`write_pairs` is for one model, as each has a list of its own; leave out `models='all'`")
    require_pairs_suffix(target)
    result = replace(door, run=replace(door.run, output=None)).evaluated(spec, given, alone=alone)
    found = result.made
    assert isinstance(found, NonbondEvaluation)
    with nullcontext() if found.pairs is None else writing_pairs(target, found.pairs, found.molecule.atoms.labels):
        if door.run.output is not None:
            found.save(door.run.output, door.run.call)
    return result


def _in_vacuum(words: Mapping[str, Any], solvent: str | None) -> Mapping[str, Any]:
    """Keywords of the solvent, where `solvent="vacuum"` leaves it out."""
    choice("solvent", "gb" if solvent is None else solvent, ("gb", "vacuum"))
    if words.get("gb") == "none" and solvent == "gb":
        raise KeywordError("`gb='none'` has no solvent; leave out `solvent`, which would have no effect")
    if words.get("gb") == "none" or solvent != "vacuum":
        return words
    if "gb" in words:
        raise KeywordError("`solvent='vacuum'` has no solvent; leave out `gb`, which would have no effect")
    return {**words, "gb": "none"}
