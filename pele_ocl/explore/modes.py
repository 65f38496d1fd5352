"""Normal modes of an anisotropic network model (ANM), and ProDy's `.nmd` format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Atoms, Floats, Ints, Labels, Strings, correspondence
from ..common.arguments import choice, file_path, number, positions_of, whole_number
from ..common.errors import FormatError, InputError
from ..common.readonly import ReadOnlyArrays, read_only
from ..common.textfiles import lines
from ..common.writing import replacing

_STILL = 6  # rigid-body modes: translations and rotations
_SPARSE = 2000  # above this number of nodes, SciPy computes only the lowest modes


@dataclass(frozen=True, eq=False)
class Modes(ReadOnlyArrays):
    """Normal modes of a network, lowest first.

    values : (m,) eigenvalues, in the unit of the network's force constant; vectors : (m, n_nodes, 3), normalized
    labels : labels of the nodes as read from a file; None if the nodes are known
    source : name of the file, for messages
    """

    values: Floats
    vectors: Floats
    labels: Labels | None = None
    source: str = "the modes"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values, np.float64))
        lengths = np.linalg.norm(np.asarray(self.vectors).reshape(len(self.values), -1), axis=1)
        object.__setattr__(self, "vectors", read_only(self.vectors / lengths[:, None, None], np.float64))

    def __len__(self) -> int:
        return len(self.values)

    def of_nodes(self, labels: Labels | None) -> tuple[Modes, tuple[str, ...]]:
        """Return the modes reordered to nodes with these labels, and notes about a different order or different names.

        Nodes are matched by chain, residue and atom name. If either side has no labels, the order is kept.

        Raises InputError, naming the first difference, if the nodes do not match.
        """
        if self.labels is None or labels is None:
            return self, ()
        found = correspondence(labels, self.labels, self.source, "the network", advice="expected modes of its nodes")
        return Modes(self.values, self.vectors[:, found.order]), found.notes

    def __repr__(self) -> str:
        return f"Modes({len(self)} of {self.vectors.shape[1]:,} nodes, eigenvalues {self.values.round(4).tolist()})"


def network_modes(
    nodes: ArrayLike, count: int = 6, *, cutoff: float = 12.0, constant: float = 1.667, bonded_constant: float = 0.0,
    model: Literal["contact", "exponential"] = "contact", decay: float = 5.0,
) -> Modes:  # fmt: skip
    """Compute the lowest modes of an elastic network, without the rigid-body modes (docs/theory/anm.md, eqs. 1 to 3).

    nodes : (n, 3) A; count : number of modes
    cutoff : distance within which nodes are connected by springs, A
    constant : force constant of springs; bonded_constant : that between consecutive nodes, 0 for the same
    model : "contact" for equal springs, "exponential" for springs scaled by exp(-r / decay), as in PELE; decay : A

    Raises InputError for fewer than three nodes, and for disconnected networks.
    """
    x = positions_of(nodes, "nodes")
    whole_number("count", count, least=1)
    number("cutoff", cutoff, "a positive distance in A", above=0)
    number("constant", constant, "a positive force constant", above=0)
    number("decay", decay, "a positive distance in A", above=0)
    choice("model", model, ("contact", "exponential"))
    if len(x) < 3:
        raise InputError(f"an elastic network needs at least three nodes; there are {len(x)}")
    count = min(count, 3 * len(x) - _STILL)
    i, j = _springs(x, cutoff)
    d = x[j] - x[i]
    r = np.linalg.norm(d, axis=1)
    k = np.full(len(i), constant)
    if model == "exponential":
        k *= np.exp(-r / decay)
    elif bonded_constant > 0:
        k[j == i + 1] = bonded_constant
    blocks = -(k / r**2)[:, None, None] * d[:, :, None] * d[:, None, :]
    values, vectors = _lowest(len(x), i, j, blocks, count + _STILL)
    if (values[: _STILL + 1] < 1e-6 * constant).sum() != _STILL:
        raise InputError(f"springs of {cutoff:g} A leave parts of the network disconnected; use a larger cutoff")
    return Modes(values[_STILL:], vectors.T[_STILL:].reshape(count, len(x), 3))


def _springs(x: Floats, cutoff: float) -> tuple[Ints, Ints]:
    """Return the pairs of nodes within the cutoff, i < j."""
    i, j = [], []
    for k in range(len(x) - 1):
        near = np.flatnonzero(((x[k + 1 :] - x[k]) ** 2).sum(axis=1) <= cutoff**2) + k + 1
        i.append(np.full(len(near), k, np.int32))
        j.append(near.astype(np.int32))
    return np.concatenate(i), np.concatenate(j)


def _lowest(n: int, i: Ints, j: Ints, blocks: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the lowest eigenvalues (count,) and eigenvectors (3 n, count) of the Hessian.

    blocks : off-diagonal blocks (n_pairs, 3, 3) of the Hessian
    """
    if n > _SPARSE:
        try:
            return _lowest_sparse(n, i, j, blocks, count)
        except ImportError:
            pass  # NumPy computes all modes, which can take minutes
    hessian = np.zeros((n, n, 3, 3))
    hessian[i, j] = blocks
    hessian[j, i] = blocks
    hessian[np.arange(n), np.arange(n)] = -hessian.sum(axis=1)
    values, vectors = np.linalg.eigh(hessian.transpose(0, 2, 1, 3).reshape(3 * n, 3 * n))
    return values[:count], vectors[:, :count]


def _lowest_sparse(n: int, i: Ints, j: Ints, blocks: Floats, count: int) -> tuple[Floats, Floats]:
    from scipy.sparse import bsr_matrix  # type: ignore[import-untyped]
    from scipy.sparse.linalg import eigsh  # type: ignore[import-untyped]

    diagonal = np.zeros((n, 3, 3))
    np.add.at(diagonal, i, -blocks)
    np.add.at(diagonal, j, -blocks)
    rows, columns = np.concatenate([i, j, np.arange(n)]), np.concatenate([j, i, np.arange(n)])
    data = np.concatenate([blocks, blocks, diagonal])
    order = np.lexsort((columns, rows))
    starts = np.searchsorted(rows[order], np.arange(n + 1))
    hessian = bsr_matrix((data[order], columns[order], starts), shape=(3 * n, 3 * n)).tocsc()
    start = np.random.default_rng(0).normal(size=3 * n)  # a random start would change the signs of the modes
    values, vectors = eigsh(hessian, count, sigma=-1e-4, which="LM", v0=start)
    order = np.argsort(values)
    return values[order], vectors[:, order]


def read_nmd(path: str | Path, scale: Literal["auto", "pele", "prody"] = "auto") -> tuple[Modes, Strings, Ints]:
    """Read an `.nmd` file: return the modes, the names of their nodes (n,) and their residue numbers (n,).

    scale : meaning of the number before each mode: "pele" for the square root of its eigenvalue, "prody" for the
        inverse of that; "auto" assumes "pele" if the numbers increase and "prody" if they decrease

    Raises FormatError for a file that cannot be read.
    """
    given = file_path(path)
    choice("scale", scale, ("auto", "pele", "prody"))
    text = list(lines(given, "NMD"))
    words = {line.split()[0]: line.split()[1:] for line in text if line.split() and not line.startswith("mode ")}
    missing = [name for name in ("atomnames", "resids", "coordinates") if name not in words]
    if missing:
        raise FormatError(f"{given}: the line {missing[0]} is missing; write the file with ProDy's writeNMD")
    n = len(words["atomnames"])
    rows: list[Floats] = []
    for k, line in enumerate(text, 1):
        if line.startswith("mode "):
            rows.append(_mode_line(given, k, line.split()[1:], 3 * n))
    if not rows:
        raise FormatError(f"{given}: the lines of modes are missing; write the file with ProDy's writeNMD")
    table = np.stack(rows)
    roots = table[:, 0]
    if (roots <= 0).any():
        raise FormatError(f"{given}: the number before a mode is not positive; expected the root of its eigenvalue")
    if scale == "prody" or (scale == "auto" and roots[0] > roots[-1]):
        roots = 1 / roots
    names, numbers = np.array(words["atomnames"]), _numbers(given, words, n)
    labels = _labels(given, words, names, numbers)
    return Modes(roots**2, table[:, 1:].reshape(-1, n, 3), labels, str(given)), names, numbers


def _labels(path: Path, words: dict[str, list[str]], names: Strings, numbers: Ints) -> Labels:
    """Return the labels of the nodes; columns that the file lacks are blank."""
    n = len(names)
    columns = {}
    for column, lines_ in (("residue_names", ("resnames",)), ("chains", ("chainids", "chids", "segnames"))):
        found = next((words[name] for name in lines_ if name in words), [""] * n)
        if len(found) != n:
            raise FormatError(f"{path}: the line {lines_[0]} has {len(found)} names for {n} nodes")
        columns[column] = np.array(found, np.str_)
    rows = list(zip(columns["chains"].tolist(), numbers.tolist(), columns["residue_names"].tolist(), strict=True))
    index = np.cumsum([k > 0 and row != rows[k - 1] for k, row in enumerate(rows)])
    return Labels(
        names=names, elements=np.full(n, "X"), residue_numbers=numbers, insertion_codes=np.full(n, ""),
        residue_index=index, **columns,
    )  # fmt: skip


def _numbers(path: Path, words: dict[str, list[str]], n: int) -> Ints:
    """Return the residue numbers of the nodes."""
    try:
        found: Ints = np.array([int(word) for word in words["resids"]], np.int32)
    except ValueError:
        raise FormatError(f"{path}: the line resids has a word that is not a whole number") from None
    if len(found) != n or len(words["coordinates"]) != 3 * n:
        raise FormatError(f"{path}: atomnames, resids and coordinates do not have the same number of nodes")
    return found


def _mode_line(path: Path, k: int, words: list[str], size: int) -> Floats:
    """Parse the scale and the components of a mode, (1 + size,); a leading index is dropped."""
    try:
        row = np.array([float(word) for word in words])
    except ValueError:
        raise FormatError(f"{path}: line {k} has a word that is not a number") from None
    if len(row) == size + 2:
        row = row[1:]
    if len(row) != size + 1 or not np.isfinite(row).all():
        raise FormatError(f"{path}: line {k} has {len(row)} numbers; expected the root of an eigenvalue and {size}")
    return row


def write_nmd(path: str | Path, modes: Modes, atoms: Atoms, nodes: ArrayLike, title: str = "modes") -> None:
    """Write modes to an `.nmd` file as PELE reads it, with the square root of the eigenvalue before each mode.

    nodes : (n_nodes,) indices of the node atoms

    Raises InputError for atoms without labels, and if the number of nodes differs from that of the modes.
    """
    given, chosen = file_path(path), np.asarray(nodes)
    if atoms.labels is None or chosen.shape != (modes.vectors.shape[1],):
        raise InputError("writing modes needs the labels of their nodes, which these atoms or indices do not have")
    labels = atoms.labels
    rows = [
        ["nmwiz_load", given.name], ["name", title.replace(" ", "_")], ["atomnames", *labels.names[chosen]],
        ["resnames", *labels.residue_names[chosen]],
        ["chainids", *(chain or "A" for chain in labels.chains[chosen].tolist())],
        ["resids", *map(str, labels.residue_numbers[chosen].tolist())],
        ["coordinates", *(f"{x:.3f}" for x in atoms.positions[chosen].ravel())],
        *(
            ["mode", str(k), f"{np.sqrt(value):.8g}", *(f"{x:.6f}" for x in vector.ravel())]
            for k, (value, vector) in enumerate(zip(modes.values, modes.vectors, strict=True), 1)
        ),
    ]  # fmt: skip
    with replacing(given) as temporary:
        temporary.write_text("".join(" ".join(row) + "\n" for row in rows), encoding="utf-8")
