"""GB pair energy over a tree of boxes, a prototype in NumPy and float64: its error against its cost.

python tests/benchmarks/pair_energy.py SYSTEM [TILES [NODES[,...] [TOLERANCE[,...]]]]

A system is a name of tests/data (src3, cct12). Targets are TILES tiles of 64 atoms, distributed over the
molecule (0: all), and sources are all atoms. A box of far atoms is represented by a Taylor series of 1/f in the
displacement from its centre, up to third order, at Chebyshev nodes in ln B, since 1/f depends only on the product of
both Born radii. At distances where 1/f is 1/r, one series is used for all radii. docs/performance/tree-pair-energy.md
has the results.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pele_ocl import Atoms, Solvent, SolventModel
from pele_ocl.atoms import Floats
from pele_ocl.tiles import Tiles

DATA = Path(__file__).parents[2] / "tests" / "data"
TILE, LEAF = 64, 8
OPENING = 0.7  # of a box's distance, its largest reach
VANISHED = 18.0  # exponent of the Gaussian behind which 1/f is 1/r, 2e-8
PAIRS_A_NODE = 4.0  # pairs that cost as much as one node of one box: the series has about 85 operations, a pair 25
MULTIPOLES = [(), (0,), (1,), (2,), *((i, j) for i in range(3) for j in range(3)), *product(range(3), repeat=3)]


@dataclass
class Level:
    """Boxes of one level: centres (k, 3), reaches and sums of |q| d^4 (k,), nodes of B and moments at each of them.

    nodes : (k, p) A; moments : (k, p, 40) powers of d up to the third, in the order of MULTIPOLES
    plain : (k, 40) the same for all radii; largest : (k,) Born radius
    """

    middles: Floats
    reaches: Floats
    left_out: Floats
    nodes: Floats
    moments: Floats
    plain: Floats
    largest: Floats


@dataclass
class Sources:
    """Atoms in the order of tiles: positions (n, 3), charges, Born radii (n,)."""

    positions: Floats
    charges: Floats
    born: Floats

    def __getitem__(self, chosen: NDArray[np.intp]) -> Sources:
        return Sources(self.positions[chosen], self.charges[chosen], self.born[chosen])


def chebyshev(lowest: Floats, highest: Floats, n_nodes: int) -> Floats:
    """Return Chebyshev nodes (k, p) for ranges (k,)."""
    angles = np.cos(np.pi * (np.arange(n_nodes) + 0.5) / n_nodes)
    return (lowest + highest)[:, None] / 2 + (highest - lowest)[:, None] / 2 * angles


def shares(values: Floats, nodes: Floats) -> Floats:
    """Return Lagrange polynomials (k, a, p) of values (k, a) for nodes (k, p)."""
    found = np.ones((*values.shape, nodes.shape[1]))
    for c, d in product(range(nodes.shape[1]), repeat=2):
        if c != d:
            found[..., c] *= (values - nodes[:, [d]]) / (nodes[:, [c]] - nodes[:, [d]])
    return found


def level_of(atoms: Sources, size: int, n_nodes: int) -> Level:
    """Return the boxes of this many atoms each; the last one is padded with zero charges."""
    count = -(-len(atoms.charges) // size)
    slots = np.minimum(np.arange(count * size), len(atoms.charges) - 1)
    here = atoms[slots]
    charges = np.where(np.arange(count * size) < len(atoms.charges), here.charges, 0).reshape(count, size)
    positions, radii = here.positions.reshape(count, size, 3), np.log(here.born).reshape(count, size)
    weights = np.abs(charges) + 1e-9
    middles = (weights[..., None] * positions).sum(1) / weights.sum(1)[:, None]
    d = positions - middles[:, None]
    powers = np.stack([np.prod([d[..., i] for i in axes], axis=0) * np.ones(d.shape[:2]) for axes in MULTIPOLES], -1)
    r2 = (d**2).sum(-1)
    nodes = chebyshev(radii.min(1) - 1e-3, radii.max(1) + 1e-3, n_nodes)
    moments = np.einsum("ka,kap,kam->kpm", charges, shares(radii, nodes), powers)
    return Level(
        middles, np.sqrt(r2.max(1)), (np.abs(charges) * r2**2).sum(1), np.exp(nodes), moments,
        np.einsum("ka,kam->km", charges, powers), np.exp(radii.max(1)),
    )  # fmt: skip


def slopes(s: Floats, product_: Floats) -> list[Floats]:
    """Return 1/f as a function of s = r^2 with its first four derivatives; product_ : of Born radii, tiny for 1/r."""
    gauss = np.exp(-s / (4 * product_))
    f = s + product_ * gauss
    f1, f2, f3, f4 = 1 - gauss / 4, gauss / (16 * product_), -gauss / (64 * product_**2), gauss / (256 * product_**3)
    root = 1 / np.sqrt(f)
    c1, c2, c3, c4 = -(root**3) / 2, 3 * root**5 / 4, -15 * root**7 / 8, 105 * root**9 / 16
    return [
        root, c1 * f1, c2 * f1**2 + c1 * f2, c3 * f1**3 + 3 * c2 * f1 * f2 + c1 * f3,
        c4 * f1**4 + 6 * c3 * f1**2 * f2 + c2 * (3 * f2**2 + 4 * f1 * f3) + c1 * f4,
    ]  # fmt: skip


def series(x: Floats, products: Floats, moments: Floats) -> tuple[Floats, Floats]:
    """Return potential (t,) and gradient (t, 3) of boxes (b,) with moments (b, 40), at x (t, b, 3) from centres."""
    h0, h1, h2, h3, h4 = slopes((x**2).sum(-1), products)
    charge, dipole = moments[:, 0], moments[:, 1:4]
    q, o = moments[:, 4:13].reshape(-1, 3, 3), moments[:, 13:].reshape(-1, 3, 3, 3)
    trace, traces = np.einsum("bii->b", q), np.einsum("biij->bj", o)
    qx, oxx = np.einsum("bij,tbj->tbi", q, x), np.einsum("bijk,tbj,tbk->tbi", o, x, x)
    xqx, xoxx = (x * qx).sum(-1), (x * oxx).sum(-1)
    xd, xt = (np.einsum("tbi,bi->tb", x, of) for of in (dipole, traces))
    potential = charge * h0 + (trace - 2 * xd) * h1 + (2 * xqx - 2 * xt) * h2 - 4 / 3 * xoxx * h3
    along = charge * h1 + (trace - 2 * xd) * h2 + (2 * xqx - 2 * xt) * h3 - 4 / 3 * xoxx * h4
    across = (-2 * dipole) * h1[..., None] + (4 * qx - 2 * traces) * h2[..., None] - 4 * oxx * h3[..., None]
    return potential.sum(1), (2 * x * along[..., None] + across).sum(1)


def pairs(own: Sources, others: Sources) -> tuple[Floats, Floats]:
    """Return potential (t,) and gradient (t, 3) due to single atoms, without self terms."""
    x = own.positions[:, None] - others.positions
    s = (x**2).sum(-1)
    h0, h1, *_ = slopes(s, own.born[:, None] * others.born)
    charges = np.where(s > 0, others.charges, 0.0)
    return (charges * h0).sum(1), 2 * np.einsum("tb,tbi->ti", charges * h1, x)


def over_tree(own: Sources, atoms: Sources, levels: list[Level], tolerance: float) -> tuple[Floats, Floats, float]:
    """Return the potential, the gradient, and the cost in pairs per atom of a tile."""
    lowest, highest = own.positions.min(0), own.positions.max(0)
    middle, half_edges = (lowest + highest) / 2, (highest - lowest) / 2
    potential, gradient, cost = np.zeros(len(own.charges)), np.zeros((len(own.charges), 3)), 0.0
    look, near = np.arange(len(levels[-1].middles)), np.array([], np.intp)
    for depth in range(len(levels) - 1, -1, -1):
        level = levels[depth]
        apart = np.maximum(np.abs(level.middles[look] - middle) - half_edges, 0)
        gap = np.sqrt((apart**2).sum(1)) + 1e-9
        far = (level.reaches[look] < OPENING * gap) & (level.left_out[look] < tolerance * gap**5)
        taken = look[far]
        is_plain = (gap[far] - level.reaches[taken]) ** 2 > 4 * VANISHED * own.born.max() * level.largest[taken]
        x = own.positions[:, None] - level.middles[taken]
        groups = [(is_plain, np.full((len(taken), 1), 1e-3), level.plain[taken][:, None])]
        groups += [(~is_plain, level.nodes[taken], level.moments[taken])]
        for of, nodes, moments in groups:
            for c in range(nodes.shape[1]):
                part = series(x[:, of], own.born[:, None] * nodes[of, c], moments[of, c])
                potential += part[0]
                gradient += part[1]
            cost += PAIRS_A_NODE * nodes.shape[1] * of.sum()
        opened = look[~far]
        look = np.concatenate([2 * opened, 2 * opened + 1])
        if depth:
            look = np.sort(look[look < len(levels[depth - 1].middles)])
        else:
            near = opened
    met = (near[:, None] * LEAF + np.arange(LEAF)).ravel()
    met = met[met < len(atoms.charges)]
    single = pairs(own, atoms[met])
    return potential + single[0], gradient + single[1], cost + len(met)


def sources_of(system: str) -> Sources:
    """Sort the atoms of a system along the Hilbert curve, and compute Born radii from all pairs."""
    data = np.load(DATA / f"{system}.npz")
    atoms = Atoms(
        positions=data["coordinates"], charges=data["charge"], gb_radii=data["obc_radius"], gb_scales=data["obc_scale"]
    )
    cached = Path(f"/tmp/{system}-born.npy")
    born = np.load(cached) if cached.exists() else Solvent(atoms, model=SolventModel()).evaluate().born_radii
    np.save(cached, born)
    tiles = Tiles.of(atoms.positions, TILE)
    order = tiles.order[tiles.used]
    return Sources(atoms.positions[order], atoms.charges[order], born[order])


def main() -> None:
    system, n_tiles, nodes, tolerances = [*sys.argv[1:], *["0", "2,3,4", "1e-3,1e-4,1e-5,1e-6"][len(sys.argv) - 2 :]]
    atoms = sources_of(system)
    n = len(atoms.charges)
    all_tiles = np.arange(0, n, TILE)
    chosen = all_tiles[:: max(1, len(all_tiles) // int(n_tiles))] if int(n_tiles) else all_tiles
    owners = [atoms[np.arange(first, min(first + TILE, n))] for first in chosen]
    exact = [pairs(own, atoms) for own in owners]
    charges = np.concatenate([own.charges for own in owners])
    potential, gradient = (np.concatenate([each[k] for each in exact]) for k in (0, 1))
    print(f"{system}, {n:,} atoms, {len(charges):,} targets")
    print(
        "| nodes | tolerance | pairs per atom | of all | energy | potential, rms | gradient, by norm |\n|" + "---|" * 7
    )
    for p in map(int, nodes.split(",")):
        sizes = [LEAF * 2**k for k in range(20) if LEAF * 2**k < 2 * n]
        levels = [level_of(atoms, size, p) for size in sizes]
        for tolerance in map(float, tolerances.split(",")):
            found = [over_tree(own, atoms, levels, tolerance) for own in owners]
            v, g = (np.concatenate([each[k] for each in found]) for k in (0, 1))
            cost = np.average([each[2] for each in found], weights=[len(own.charges) for own in owners])
            energy = (charges @ v) / (charges @ potential) - 1
            rms = np.linalg.norm(v - potential) / np.linalg.norm(potential)
            norm = np.linalg.norm((g - gradient) * charges[:, None]) / np.linalg.norm(gradient * charges[:, None])
            print(
                f"| {p} | {tolerance:.0e} | {cost:,.0f} | {cost / n:.2f} | {energy:.1e} | {rms:.1e} | {norm:.1e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
