"""Device tables for side-chain prediction: rotatable bonds, and parameters of atom pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms import Atoms, Floats, Ints
from ..common.errors import InputError
from ..ensemble import Ensemble
from ..gb_models.solvent_model import SolventModel
from ..opencl.interface import PAIR_MODEL, SIDE_CHAIN, SIDE_CHAIN_BLOCK
from ..pairs import nonbonded_pairs, own_lj_pairs
from ..pairs.dielectric import inverse_dielectrics
from ..tiles.tables import scaled_charges
from .rotations import RotamerChain

if TYPE_CHECKING:
    from ..opencl.memory import Buffer

_MOST_MOVED = 24  # enough for the atoms of any standard side chain, so that all use the same kernels
_PAIR_COLUMNS = 4  # product of charges, sigma, well depth, and whether the pair is checked for clashes


def vector_width(ensemble: Ensemble) -> int:
    """Return the number of atoms that kernels process together: the vector width on CPUs, one on GPUs."""
    if ensemble.device.kind != "CPU":
        return 1
    return min(ensemble.device.vector_width(ensemble.precision), SIDE_CHAIN_BLOCK)


class Pairwise:
    """Pair parameters of atoms, as in the ensemble's energy.

    charges : (n,) multiplied by the square root of Coulomb's constant; sigmas : as from scaled_sigma2; wells : square
        roots of 4 epsilon
    inverses : (n,) inverse interior dielectric constants; special : parameters of excluded and 1-4 pairs, by atom and
        partner
    """

    def __init__(self, atoms: Atoms, ensemble: Ensemble, model: SolventModel) -> None:
        """Raises InputError for pair-specific Lennard-Jones parameters (NBFIX)."""
        atoms.require(("charges", "lj_sigma", "lj_epsilon"), "the prediction of side chains")
        if len(own_lj_pairs(atoms)):
            raise InputError(
                "pairs of atoms have special Lennard-Jones parameters (NBFIX), which side-chain prediction does "
                "not support; use another force field"
            )
        assert atoms.lj_sigma is not None
        assert atoms.lj_epsilon is not None
        self.combining, self.sigma = atoms.combining, atoms.lj_sigma
        self.charges = scaled_charges(atoms, model, ensemble.precision)
        self.sigmas = np.sqrt(atoms.lj_sigma) if atoms.combining == "geometric" else atoms.lj_sigma / 2
        self.wells = np.sqrt(4 * atoms.lj_epsilon)
        self.inverses = inverse_dielectrics(atoms, model)
        pairs = nonbonded_pairs(atoms)
        self.special: dict[int, dict[int, tuple[float, float, float]]] = {}
        scaled = pairs.one_four.parameters * [model.coulomb_factor, 1.0, 4.0]
        if ensemble.state.options["one_four"] == "exclude":
            scaled = np.zeros_like(scaled)
        none = [(0.0, 0.0, 0.0)] * len(pairs.excluded)
        for (i, j), values in [
            *zip(pairs.excluded.tolist(), none, strict=True),
            *zip(pairs.one_four.atoms.tolist(), map(tuple, scaled.tolist()), strict=True),
        ]:
            self.special.setdefault(i, {})[j] = values
            self.special.setdefault(j, {})[i] = values

    def between(self, i: int, others: Ints) -> Floats:
        """Return the parameters of atom i with others, (4, k): charge product, sigma, well, and 1 for normal pairs."""
        sigma = (
            self.sigmas[i] * self.sigmas[others]
            if self.combining == "geometric"
            else self.sigmas[i] + self.sigmas[others]
        )
        found = np.stack(
            [self.charges[i] * self.charges[others], sigma, self.wells[i] * self.wells[others], np.ones(len(others))]
        )
        own = self.special.get(i, {})
        for k, j in enumerate(others.tolist()):
            if j in own:
                found[:, k] = *own[j], 0.0
        found[:, others == i] = 0
        return found


class SideChainTables:
    """Buffers for the side chains of a molecule, named as in CHAINS of cl/explore/side_chains.cl.

    chains : the side chains, in order; n_columns : number of atoms, rounded up to whole blocks
    """

    def __init__(self, ensemble: Ensemble, atoms: Atoms, chains: Sequence[RotamerChain]) -> None:
        """Raises InputError for atoms with energy terms that the prediction does not support."""
        self.chains = tuple(chains)
        queue = ensemble.state.queue
        model = SolventModel.or_default(ensemble.state.options["model"])
        pairs = Pairwise(atoms, ensemble, model)
        self.has_gb = not model.gb_model.vacuum
        self.n_columns = -(-len(atoms) // SIDE_CHAIN_BLOCK) * SIDE_CHAIN_BLOCK
        self.most_moved = max((len(chain.moved) for chain in chains), default=1)
        lists: dict[str, list[Any]] = {name: [] for name in ("moved", "turned", "axes", "near", "members", "series")}
        near_pairs, inner = [np.zeros(0)], [np.zeros((0, 4))]
        records = np.zeros(max(1, len(chains)), SIDE_CHAIN.dtype(ensemble.precision))
        of_atom = _torsions_of(atoms)
        sizes = {"pairs": 0, "inner": 0}
        for number, chain in enumerate(chains):
            n, special = len(chain.moved), {j for i in chain.moved.tolist() for j in pairs.special.get(i, {})}
            blocks = sorted({j // SIDE_CHAIN_BLOCK for j in [*special, *chain.moved.tolist()]})
            torsions, polar = _torsions(atoms, chain, of_atom)
            first = {name: len(values) for name, values in lists.items()}
            records[number] = (
                first["moved"], n, first["axes"], len(chain.torsions), chain.n_chi, chain.polar_steps, first["near"],
                len(blocks), sizes["pairs"], sizes["inner"], first["members"], first["members"] + len(torsions),
                first["members"] + len(torsions) + len(polar),
            )  # fmt: skip
            lists["moved"] += chain.moved.tolist()
            lists["turned"] += (chain.turned.T @ (1 << np.arange(len(chain.torsions)))).tolist()
            lists["axes"] += chain.torsions[:, 1:3].tolist()
            lists["near"] += blocks
            for members, series in [*torsions, *polar]:
                lists["members"].append(members)
                lists["series"].append(series)
            others = np.concatenate([np.arange(SIDE_CHAIN_BLOCK) + SIDE_CHAIN_BLOCK * block for block in blocks])
            there = others < len(atoms)
            table = np.zeros((n, _PAIR_COLUMNS, len(others)))
            for m, i in enumerate(chain.moved.tolist()):
                table[m][:, there] = pairs.between(i, others[there])
            in_blocks = table.reshape(n, _PAIR_COLUMNS, len(blocks), SIDE_CHAIN_BLOCK).transpose(2, 0, 1, 3)
            near_pairs.append(in_blocks.ravel())
            inner.append(np.concatenate([pairs.between(i, chain.moved).T for i in chain.moved.tolist()]))
            sizes["pairs"], sizes["inner"] = sizes["pairs"] + in_blocks.size, sizes["inner"] + n * n
        traits = np.column_stack([pairs.charges, pairs.sigmas, pairs.wells, pairs.inverses])
        halves = np.zeros(self.n_columns)
        halves[: len(atoms)] = pairs.sigma / 2
        fine = ensemble.state.fine
        self.halves = queue.upload(halves)
        self.buffers: dict[str, Buffer | np.void | int] = dict(
            model=PAIR_MODEL.pack(ensemble.precision, outside=model.outside, kappa=model.kappa, cutoff2=0.0),
            n_columns=self.n_columns,
            chains=queue.upload(records, records.dtype),
            **{
                name: queue.upload(_ints(lists[name]), np.int32)
                for name in ("moved", "turned", "axes", "near", "members")
            },
            traits=queue.upload(traits),
            near_pairs=queue.upload(np.concatenate(near_pairs)),
            inner=queue.upload(np.concatenate(inner)),
            series=queue.upload(np.array(lists["series"] or [[0.0] * 4]), fine),
        )
        self.traits = self.buffers["traits"]
        self.width = vector_width(ensemble)
        self.macros = dict(
            MOST_MOVED=max(_MOST_MOVED, self.most_moved), HAS_GB=int(self.has_gb),
            GEOMETRIC=int(atoms.combining == "geometric"), SCREENED=int(model.kappa > 0),
        )  # fmt: skip


def _ints(values: list[Any]) -> Ints:
    return np.array(values or [0], np.int32)


def _torsions_of(atoms: Atoms) -> dict[int, list[tuple[tuple[int, ...], tuple[float, ...]]]]:
    """Return torsions and impropers by atom: their atoms and coefficients for `cosine_series`."""
    found: dict[int, list[tuple[tuple[int, ...], tuple[float, ...]]]] = {}
    if atoms.bonded is None:
        return found
    for table in (atoms.bonded.torsions, atoms.bonded.impropers):
        k, n, phase = table.parameters.T
        series = np.column_stack([np.abs(n), k, k * np.cos(phase), np.sign(n) * k * np.sin(phase)])
        for members, term in zip(table.atoms.tolist(), series.tolist(), strict=True):
            entry = tuple(members), tuple(term)
            for i in members:
                found.setdefault(i, []).append(entry)
    return found


def _torsions(
    atoms: Atoms, chain: RotamerChain, of_atom: dict[int, list[tuple[tuple[int, ...], tuple[float, ...]]]]
) -> tuple[list[Any], list[Any]]:
    """Return the torsions changed by rotations of a side chain: those without and those with a polar hydrogen."""
    place = {i: m for m, i in enumerate(chain.moved.tolist())}
    bits = {i: tuple(chain.turned[:, m]) for i, m in place.items()}
    polar = {i for i, m in place.items() if chain.polar[m]}
    torsions: list[Any] = []
    polar_torsions: list[Any] = []
    entries = {id(entry): entry for i in chain.moved.tolist() for entry in of_atom.get(i, [])}
    for members, term in entries.values():
        if len({bits.get(i) for i in members}) == 1:
            continue
        coded = [-1 - place[i] if i in place else i for i in members]
        (polar_torsions if polar & set(members) else torsions).append((coded, term))
    return torsions, polar_torsions
