"""Report of `pele-ocl binding` as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...binding import Binding, BindingEnergies
from ...binding.amber import amber_terms
from ...binding.comparing import Difference
from ...binding.decomposition import GROUPS, Decomposition, Shares
from ...binding.energies import SYSTEMS, is_large
from ...binding.entropy import Entropy
from ...binding.scan import AlanineScan
from ...binding.separate import SeparateEnergies
from ...binding.statistics import Spread, spread_of
from ...contract import Finding
from ...jobs.records import Kind, entries
from ..clock import elapsed
from ..frames.tally import imaged
from ..report import composition_as_json, counted, settings

Statistics = Mapping[str, Mapping[str, Spread]]


@dataclass(frozen=True)
class BindingReport:
    """All that was found of one ligand.

    ligand, receptor, like : as they were given; kind : of conformations, None for the structure alone
    grid_errors : of the function of that name with --pb, None without
    """

    binding: Binding
    energies: BindingEnergies | SeparateEnergies
    ligand: str
    receptor: str | None
    like: str | None
    entropy: Entropy | None = None
    scan: AlanineScan | None = None
    comparison: Mapping[str, Difference] | None = None
    kind: Kind | None = None
    grid_errors: Mapping[str, float] | None = None

    def imaged(self) -> list[Finding]:
        """Give the finding that frames were imaged."""
        of = self.energies
        systems = [of] if isinstance(of, BindingEnergies) else [*of.systems.values()]
        return imaged(sum(each.n_imaged for each in systems), sum(len(each) for each in systems))

    @property
    def poses(self) -> BindingEnergies | None:
        """Energies of poses, which have no mean; None for frames and models."""
        return self.energies if isinstance(self.energies, BindingEnergies) and self.energies.rmsd is not None else None

    @property
    def n_frames(self) -> int:
        """Frames of the complex."""
        of = self.energies
        return len(of) if isinstance(of, BindingEnergies) else len(of.systems["complex"])

    @property
    def n_failed(self) -> int:
        """Frames that failed, of all three systems if they have trajectories of their own."""
        of = self.energies
        return len(of.errors) if isinstance(of, BindingEnergies) else sum(len(s.errors) for s in of.systems.values())

    @property
    def decomposition(self) -> Decomposition | None:
        return self.energies.decomposition if isinstance(self.energies, BindingEnergies) else None


def amber_statistics(energies: BindingEnergies | SeparateEnergies) -> Statistics:
    """Give the Spread of each term by AMBER's names."""
    if isinstance(energies, SeparateEnergies):
        return energies.statistics(amber_terms)
    return {
        name: {term: spread_of(np.atleast_1d(values)) for term, values in amber_terms(terms).items()}
        for name, terms in energies.systems().items()
    }


def as_json(found: BindingReport) -> dict[str, object]:
    """Make the whole report."""
    binding, energies = found.binding, found.energies
    report: dict[str, object] = {
        "n_atoms": len(binding.atoms),
        "n_receptor": len(binding.parts.receptor),
        "n_ligand": len(binding.parts.ligand),
        "left_out": dict(binding.parts.left_out),
        "composition": composition_as_json(binding.atoms),
    }
    if found.poses is None:
        statistics = energies.statistics()
        report |= {name: _of_system(statistics[name]) for name in SYSTEMS}
        report["energy"] = {term: of.mean for term, of in statistics["delta"].items()}
        report["amber"] = {name: _of_system(of) for name, of in amber_statistics(energies).items()}
    if isinstance(energies, SeparateEnergies):
        counts = {name: {"n_frames": len(of), "n_failed": len(of.errors)} for name, of in energies.systems.items()}
        report |= {"n_frames": found.n_frames, "n_failed": found.n_failed, "trajectories": counts}
    elif found.kind is not None:
        report |= entries(found.kind, _conformations(energies))
    report |= {} if found.grid_errors is None else {"grid_errors": dict(found.grid_errors)}
    report |= {} if found.decomposition is None else _residues(found.decomposition)
    report |= {} if found.entropy is None else {"entropy": found.entropy.as_json()}
    if found.scan is not None:
        report["alanine"] = alanine_as_json(found.scan)
        report["alanine_left_out"] = [
            {"residue": str(residue), "reason": reason} for residue, reason in found.scan.left_out
        ]
    if found.comparison is not None:
        report["compare"] = {
            term: {"difference": of.difference, "error": of.error, "p_value": of.p_value}
            for term, of in found.comparison.items()
        }
    return {
        **report,
        "device": str(binding.device),
        "variant": binding.variant,
        "precision": binding.precision,
        "notes": [*binding.notes, *notes_about(found)],
        "settings": _settings(found),
        "seconds": {"total": elapsed()},
    }


def notes_about(found: BindingReport) -> list[str]:
    """Sentences about the energies that were found."""
    energies = found.energies
    notes = [] if found.scan is None else found.scan.notes
    if isinstance(energies, SeparateEnergies):
        return notes
    if found.like == "mmpbsa.py" and found.binding.idecomp is not None:
        notes.append(
            "MMPBSA.py decomposes by sander, whose dielectric constant of water is 80 in place of 78.3; --like sander "
            "has the constants of its decompositions"
        )
    n = int(np.count_nonzero(is_large(energies.complex)))
    if not n:
        return notes
    kind = "frame" if found.poses is None else "pose"
    how = "; they were computed in float64" if found.binding.precision == "float32" else ""
    return [*notes, f"atoms are on top of each other in {counted(n, kind)}, with energies to match{how}"]


def _of_system(terms: Mapping[str, Spread]) -> dict[str, dict[str, float | None]]:
    return {term: of.as_json() for term, of in terms.items()}


def _conformations(energies: BindingEnergies) -> Iterator[tuple[int, Mapping[str, object] | str]]:
    """Give each frame or model with the difference's terms, or with why it failed."""
    columns = {term: values.tolist() for term, values in energies.delta.columns().items()}
    numbers = range(len(energies)) if energies.frames is None else energies.frames.tolist()
    for k, number in enumerate(numbers):
        reason = energies.errors.get(k)
        rmsd = None if energies.rmsd is None else float(energies.rmsd[k])
        more = {} if rmsd is None else {"pose": k + 1, "rmsd": rmsd if np.isfinite(rmsd) else None}
        of = {"energy": {term: values[k] for term, values in columns.items()}, **more}
        yield number, of if reason is None else reason


def _residues(of: Decomposition) -> dict[str, object]:
    """Give the shares of residues in the difference and, if there are any, of pairs that are not 0."""
    shares = of.per_residue["delta"]
    found: dict[str, object] = {"residues": [_shares(shares, (k,), {"residue": n}) for k, n in enumerate(of.names)]}
    if of.pairs is not None:
        pairs = of.pairs["delta"]
        places = np.argwhere(np.triu(np.abs(pairs.mean).max(axis=-1) > 1e-6)).tolist()
        found["pairs"] = [_shares(pairs, (i, j), {"residues": [of.names[i], of.names[j]]}) for i, j in places]
    return found


def _shares(shares: Shares, place: tuple[int, ...], names: Mapping[str, object]) -> dict[str, object]:
    groups = dict(zip(GROUPS, shares.mean[place].tolist(), strict=True))
    return {**names, **groups, "total": float(shares.total[place]), "sd": float(shares.sd_total[place])}


def alanine_as_json(scan: AlanineScan) -> list[dict[str, object]]:
    """Give the change of the binding energy of each site, and of each frame."""
    return [
        {"residue": str(residue), **of.as_json(), "changes": _plain(changes.tolist())}
        for residue, of, changes in zip(scan.residues, scan.statistics(), scan.changes, strict=True)
    ]


def _plain(values: Sequence[float]) -> list[float | None]:
    return [None if value != value else value for value in values]


def _settings(found: BindingReport) -> dict[str, object]:
    binding = found.binding
    constants = settings(binding.model, binding.atoms)
    of_pb = {} if binding.pb is None else {"gb": None, "pb": vars(binding.pb)}
    return {
        **constants,
        **of_pb,
        "ligand": found.ligand,
        "receptor": found.receptor,
        "like": found.like,
        "one_four": binding.options.one_four,
        "cutoff": binding.options.cutoff,
        "idecomp": binding.idecomp,
    }
