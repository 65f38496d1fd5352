"""Free energies from samples of several states by MBAR; docs/theory/sampling.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Floats, Ints
from ..common.arguments import array, number, numbers, texts, whole_number
from ..common.errors import InputError
from ..common.settled import Settled
from ..common.writing import replacing
from ..formats.maps.pictures import require_png
from ..report import Column, Report, Reported
from ..units import BOLTZMANN_KCAL

CLOSE = 1e-10  # convergence: largest change of a reduced free energy
MOST_ITERATIONS = 10_000
MOST_BINS, MOST_VALUE = 100_000, 1e15
LEAST_IN_COMMON = 0.05  # samples; a sample that belongs equally to two states counts as 1/4
FAR = 20.0  # change of a reduced free energy after which reference weights are recomputed


@dataclass(frozen=True, eq=False, repr=False)
class FreeEnergyResult(Reported):
    """Free energy of collective variables on a grid of bins, with errors from block averages.

    edges : bin edges of each variable, (n + 1,)
    energies : (n_1, ...) kcal/mol, 0 in the lowest bin; infinite without samples
    errors : (n_1, ...) standard errors of the mean of blocks, kcal/mol; NaN if a block has no sample, or its states
        none in common
    temperature : K
    names, units : of the variables; by default variable_1 and so on, without units
    """

    edges: tuple[Floats, ...]
    energies: Floats
    errors: Floats
    temperature: float
    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        d = len(self.edges)
        object.__setattr__(self, "names", self.names or tuple(f"variable_{k + 1}" for k in range(d)))
        object.__setattr__(self, "units", self.units or ("",) * d)

    @property
    def centers(self) -> tuple[Floats, ...]:
        """Bin centres of each variable."""
        return tuple((of[1:] + of[:-1]) / 2 for of in self.edges)

    def table(self) -> Report:
        """Return a table with the variables, energy and error of each bin with samples."""
        there, places = np.isfinite(self.energies), np.meshgrid(*self.centers, indexing="ij")
        columns: dict[str, Any] = {
            name: Column(of[there], unit, form=".4f")
            for name, unit, of in zip(self.names, self.units, places, strict=True)
        }  # fmt: skip
        errors = self.errors[there]
        columns["free_energy"] = Column(self.energies[there], "kcal/mol")
        columns["error"] = Column(np.ma.masked_array(np.nan_to_num(errors), np.isnan(errors)), "kcal/mol")
        notes = ["errors are empty for bins without samples in some block"] if np.isnan(errors).any() else []
        return Report("Free energy surface", columns, {"temperature": self.temperature}, notes)

    def to_json(self) -> dict[str, Any]:
        """Return the table in JSON form."""
        return self.table().to_json()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table as CSV, JSON or HDF5, depending on the suffix."""
        self.table().save(path)

    def draw(self, path: str | PathLike[str]) -> None:
        """Plot the free energy of one variable, with errors, or of two variables, as a map, to a PNG file.

        Raises InputError for three variables, FormatError for another suffix or a file that cannot be written, and
        PeleError if matplotlib is not installed.
        """
        require_png(path)
        if len(self.edges) > 2:
            raise InputError(f"a surface of {len(self.edges)} variables cannot be drawn; use two variables")
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.0, 4.0), layout="constrained")
        axes, energies = figure.subplots(), np.where(np.isfinite(self.energies), self.energies, np.nan)
        if len(self.edges) == 1:
            axes.errorbar(self.centers[0], energies, yerr=np.nan_to_num(self.errors), capsize=2)
            axes.set_ylabel("free energy (kcal/mol)")
        else:
            mesh = axes.pcolormesh(*self.edges, energies.T, cmap="viridis")
            figure.colorbar(mesh, label="free energy (kcal/mol)")
            axes.set_ylabel(self._title(1))
        axes.set_xlabel(self._title(0))
        with replacing(path) as temporary:
            figure.savefig(temporary, format="png", dpi=150, metadata={"Software": "pele-ocl"})

    def _title(self, k: int) -> str:
        return self.names[k].replace("_", " ") + (f" ({self.units[k]})" if self.units[k] else "")

    def __repr__(self) -> str:
        return str(self.table())


class MBAR(Settled):
    """Multistate Bennett acceptance ratio (Shirts and Chodera, J. Chem. Phys. 2008, 129, 124105).

    u_kn : (n_states, n_samples) reduced energies U / (k_B T) of all samples in all states
    states : (n_samples,) state of each sample, in time order

    `f_k` are the reduced free energies (n_states,), 0 for the first state; `n_k` are the numbers of samples.

        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> x = np.concatenate([rng.normal(0, 1, 4000), rng.normal(0, 0.5, 4000)])
        >>> found = MBAR(np.stack([x**2 / 2, 2 * x**2]), np.repeat([0, 1], 4000))
        >>> bool(abs(found.f_k[1] - np.log(2)) < 0.03)
        True
    """

    def __init__(self, u_kn: ArrayLike, states: ArrayLike) -> None:
        self.u_kn = numbers("u_kn", u_kn).view()
        self.states = array("states", states, "iu", "whole numbers").astype(np.int64)
        self.u_kn.flags.writeable = self.states.flags.writeable = False  # because f_k is cached
        if self.u_kn.ndim != 2 or self.states.shape != self.u_kn.shape[1:] or not self.u_kn.size:
            raise InputError(
                f"u_kn has shape {self.u_kn.shape} and states {self.states.shape}; expected (n_states, n_samples) "
                "and (n_samples,)"
            )
        if self.states.min() < 0 or self.states.max() >= len(self.u_kn):
            raise InputError(f"states must be of 0 to {len(self.u_kn) - 1}")
        self._require_energies()
        self._start: Floats | None = None  # initial guess of f_k

    def _block(self, part: slice) -> MBAR:
        """Return an MBAR of a block of samples, or this one if the block contains all."""
        if part == slice(0, len(self.states)):
            return self
        found = MBAR(self.u_kn[:, part], self.states[part])
        found._start = self.f_k
        return found

    def _require_energies(self) -> None:
        """Raise InputError if a sample has no finite energy in its own state, or NaN in another.

        Also raised for a state in which all energies are infinite.
        """
        own = self.u_kn[self.states, np.arange(len(self.states))]
        wrong = (np.isnan(self.u_kn) | (self.u_kn == -np.inf)).any(axis=0) | ~np.isfinite(own)
        if not wrong.any():
            if (empty := ~np.isfinite(self.u_kn).any(axis=1)).any():
                raise InputError(f"no sample has a finite energy in state {int(empty.argmax())}; leave it out")
            return
        n = int(wrong.argmax())
        column, state = self.u_kn[:, n], int(self.states[n])
        k = state if not np.isfinite(column[state]) else int((~(column > -np.inf)).argmax())
        where = f"state {k}, which it was drawn from" if k == state else f"state {k}"
        raise InputError(
            f"sample {n} has the reduced energy {column[k]:g} in {where}; expected finite numbers, or infinity in "
            "other states"
        )

    @property
    def n_k(self) -> Ints:
        """Number of samples from each state, (n_states,)."""
        return np.bincount(self.states, minlength=len(self.u_kn)).astype(np.int32)

    def __repr__(self) -> str:
        return f"MBAR({len(self.u_kn):,} states, {len(self.states):,} samples)"

    @cached_property
    def f_k(self) -> Floats:
        """Reduced free energies of the states, (n_states,), 0 for the first; computed in float64.

        Raises InputError if they do not converge, or if states do not overlap.
        """
        found = _solved(self.u_kn, self.n_k, self._own_means if self._start is None else self._start)
        self._require_connected(found)
        return found

    @property
    def _own_means(self) -> Floats:
        """Initial guess of f_k: mean energy of each state's own samples, or the lowest energy without samples."""
        found: Floats = self.u_kn.min(axis=1)
        own = self.u_kn[self.states, np.arange(len(self.states))]
        there = np.flatnonzero(self.n_k > 0)
        found[there] = np.bincount(self.states, own)[there] / self.n_k[there]
        found -= found[0]
        return found

    @property
    def overlap(self) -> Floats:
        """Overlap matrix, (n_states, n_states); each row sums to 1. Neighbouring states need about 0.03 or more.

        An element is the probability that a sample of one state belongs to another (Klimovich, Shirts and Mobley, J.
        Comput. Aided Mol. Des. 2015, 29, 397).
        """
        return _shared(self.u_kn, self.n_k, self.f_k)

    def _require_connected(self, f_k: Floats) -> None:
        """Raise InputError if there are groups of states without overlap, whose free energies cannot be compared."""
        there = np.flatnonzero(self.n_k > 0)
        if len(there) < 2:
            return
        in_common = _shared(self.u_kn, self.n_k, f_k)[np.ix_(there, there)] * self.n_k[there, None]
        group, new = np.zeros(len(there), bool), np.zeros(len(there), bool)
        new[0] = True
        while new.any():
            group |= new
            new = (in_common[group].sum(axis=0) > LEAST_IN_COMMON) & ~group
        if not group.all():
            one, other = (
                ", ".join(map(str, of[:6])) + (", ..." if len(of) > 6 else "") for of in (there[group], there[~group])
            )
            raise InputError(
                f"states {one} have no samples in common with states {other}, so their free energies cannot be "
                "compared; add states between them, or sample longer"
            )

    def log_weights(self, u_n: ArrayLike | None = None) -> Floats:
        """Return the logarithms of the normalized weights of all samples in a target state, (n_samples,).

        u_n : (n_samples,) reduced energies of the samples in the target state; None for state 0
        """
        target = self._target(u_n)
        found: Floats = -target - _log_mixture(self.u_kn, self.n_k, self.f_k)
        found -= _log_sum(found)
        return found

    def _target(self, u_n: ArrayLike | None) -> Floats:
        """Return the reduced energies in the target state, (n_samples,). u_n : as in log_weights"""
        found = self.u_kn[0] if u_n is None else numbers("u_n", u_n)
        if found.shape != self.states.shape:
            raise InputError(f"u_n has shape {found.shape}; expected {self.states.shape}")
        if not (found > -np.inf).all() or not np.isfinite(found).any():
            raise InputError("u_n must be numbers, or infinity for samples without weight; some must be finite")
        return found

    def mean(self, values: ArrayLike, u_n: ArrayLike | None = None) -> Floats:
        """Return the mean of values (n_samples, ...) in a target state. u_n : as in log_weights"""
        given = numbers("values", values)
        if given.shape[:1] != self.states.shape:
            raise InputError(f"values have shape {given.shape}; expected ({len(self.states)}, ...)")
        _require_finite(given)
        found: Floats = np.tensordot(np.exp(self.log_weights(u_n)), given, axes=1)
        return found

    def error(self, values: ArrayLike, u_n: ArrayLike | None = None, *, blocks: int = 5) -> Floats:
        """Return the standard error of `mean`, estimated from separate solutions for consecutive blocks of samples."""
        given, target = numbers("values", values), self._target(u_n)
        n = len(self.states)
        if given.shape[:1] != (n,) or n < whole_number("blocks", blocks, least=2):
            raise InputError(f"values have shape {given.shape}; expected ({n}, ...), {blocks} or more")
        _require_finite(given)
        parts = [slice(a, b) for a, b in pairwise(np.linspace(0, n, blocks + 1).astype(int))]
        means = [self._block(part).mean(given[part], target[part]) for part in parts]
        found: Floats = np.std(means, axis=0, ddof=1) / np.sqrt(blocks)
        return found

    def free_energy(
        self, values: ArrayLike, bins: int | Sequence[ArrayLike], temperature: float, *, u_n: ArrayLike | None = None,
        blocks: int = 5, names: Sequence[str] = (), units: Sequence[str] = (),
    ) -> FreeEnergyResult:  # fmt: skip
        """Compute the free energy of variables in a target state, with errors from block averages.

        values : (n_samples, d), or (n_samples,); bins, blocks, names, units : as in `free_energy`
        u_n : as in log_weights; temperature : of the target state, K
        """
        given, target = numbers("values", values), self._target(u_n)
        if given.shape[:1] != self.states.shape:
            raise InputError(f"values have shape {given.shape}; expected ({len(self.states)},) or more dimensions")

        def weights(part: slice) -> Floats:
            return self._block(part).log_weights(target[part])

        return _surface(given, bins, temperature, weights, blocks, names, units)


def free_energy(
    values: ArrayLike, bins: int | Sequence[ArrayLike], temperature: float, *, log_weights: ArrayLike | None = None,
    blocks: int = 5, names: Sequence[str] = (), units: Sequence[str] = (),
) -> FreeEnergyResult:  # fmt: skip
    """Compute a free energy surface from a weighted histogram, -k_B T ln(weight), with errors from block averages.

    values : (n_samples, d) or (n_samples,), in time order
    bins : number of bins per variable, from the smallest to the largest value; or a sequence of bin edges for each
        variable; for a single variable, the edges themselves are also accepted
    temperature : K
    log_weights : (n_samples,) logarithms of the weights, equal by default; use V / (k_B T) to remove a bias V
    blocks : number of consecutive blocks of samples; errors are the standard error of their mean
    names, units : of the variables, for tables and plots

        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(0, 1, 20000)
        >>> surface = free_energy(x, [np.linspace(-1.5, 1.5, 4)], 300.0)
        >>> surface.energies.round(1), surface.errors.shape
        (array([0.3, 0. , 0.2]), (3,))
    """
    given = np.atleast_1d(numbers("values", values))
    weights = np.zeros(len(given)) if log_weights is None else numbers("log_weights", log_weights)
    if weights.shape != given.shape[:1]:
        raise InputError(f"log_weights have shape {weights.shape}; expected {given.shape[:1]}")
    if not (weights < np.inf).all():
        raise InputError("log_weights must be numbers, or minus infinity for samples without weight")
    return _surface(given, bins, temperature, lambda part: weights[part], blocks, names, units)


def _surface(
    values: Floats, bins: int | Sequence[ArrayLike], temperature: float, weights: Any, blocks: int,
    names: Sequence[str], units: Sequence[str],
) -> FreeEnergyResult:  # fmt: skip
    """Compute a free energy surface. weights : function that returns the log weights of a slice of the samples"""
    number("temperature", temperature, "a temperature above 0 K", above=0.0)
    whole_number("blocks", blocks, least=2)
    of = np.atleast_1d(values)
    of = of[:, None] if of.ndim == 1 else of
    if of.ndim != 2 or len(of) < blocks:
        raise InputError(f"values have shape {values.shape}; expected (n_samples, d), {blocks} samples or more")
    _require_finite(of)
    edges, named = _edges(of, bins), {"names": tuple(texts("names", names)), "units": tuple(texts("units", units))}
    for word, given in named.items():
        if len(given) not in (0, len(edges)):
            raise InputError(f"{word} are {list(given)}; expected {len(edges)}, one per variable")
    kt = BOLTZMANN_KCAL * temperature

    def energies(part: slice) -> Floats:
        found = np.asarray(weights(part))
        if (most := found.max()) == -np.inf:
            raise InputError("no sample has a weight")
        counts, _ = np.histogramdd(of[part], edges, weights=np.exp(found - most))
        if not counts.any():
            raise InputError("no sample with a weight is within the bins")
        with np.errstate(divide="ignore"):
            energy: Floats = -kt * np.log(counts / counts.sum())
        return energy

    def of_block(part: slice) -> Floats:
        try:
            return energies(part)
        except InputError:  # no sample within the bins, or no overlap of states
            return np.full([len(of) - 1 for of in edges], np.inf)

    whole = energies(slice(0, len(of)))
    ends = np.linspace(0, len(of), blocks + 1).astype(int)
    parts = np.stack([of_block(slice(a, b)) for a, b in pairwise(ends)])
    there = np.isfinite(parts).all(axis=0)
    errors = np.full(whole.shape, np.nan)
    errors[there] = parts[:, there].std(axis=0, ddof=1) / np.sqrt(blocks)
    return FreeEnergyResult(tuple(edges), whole - whole.min(), errors, temperature, **named)


def _require_finite(values: Floats) -> None:
    """Raise InputError for the first sample with a value that is not finite."""
    wrong = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
    if wrong.any():
        n = int(wrong.argmax())
        first = values[n][~np.isfinite(values[n])].ravel()[0]
        raise InputError(f"sample {n} has the value {first:g}; expected finite numbers; leave it out")


def _edges(values: Floats, bins: int | Sequence[ArrayLike]) -> list[Floats]:
    d = values.shape[1]
    listed = bins.tolist() if isinstance(bins, np.ndarray) else bins
    if d == 1 and isinstance(listed, list | tuple) and all(isinstance(of, int | float | np.number) for of in listed):
        bins = [listed]  # edges of a single variable
    if not isinstance(bins, list | tuple):
        count = whole_number("bins", bins, least=1, most=MOST_BINS)
        most = np.abs(values).max()
        if not most < MOST_VALUE:
            raise InputError(f"values up to {most:g} have no bins; give edges")
        return [np.histogram_bin_edges(of, count) for of in values.T]
    edges = [numbers("bins", of) for of in bins]
    if len(edges) != d or any(of.ndim != 1 or len(of) < 2 or not (np.diff(of) > 0).all() for of in edges):
        raise InputError(f"bins must be a number, or rising edges of each of {d} variables")
    return edges


def _log_sum(values: NDArray[np.float64], axis: int | None = None) -> Any:
    most = values.max(axis=axis, keepdims=True)
    found = np.log(np.exp(values - most).sum(axis=axis, keepdims=True)) + most
    return found.item() if axis is None else np.squeeze(found, axis)


def _log_mixture(u_kn: Floats, n_k: Ints, f_k: Floats) -> Floats:
    """Return the logarithm of the sum over states of n_k exp(f_k - u_kn), (n_samples,)."""
    there = n_k > 0
    found: Floats = _log_sum((np.log(n_k[there]) + f_k[there])[:, None] - u_kn[there], axis=0)
    return found


def _solved(u_kn: Floats, n_k: Ints, start: Floats) -> Floats:
    """Solve for f_k by self-consistent iteration and Newton's method. start : initial guess"""
    equations, f = _Equations(u_kn, n_k, start), start
    for _ in range(MOST_ITERATIONS):
        after = equations.self_consistent(f)
        if (n_k > 0).sum() > 1:
            after = equations.newton(after)
        change, f = np.abs(after - f).max(), after
        if change < CLOSE:
            return f
    raise InputError(f"free energies of states do not converge in {MOST_ITERATIONS:,} iterations; they hardly overlap")


class _Equations:
    """MBAR equations. Weights are computed at a reference f_k and rescaled nearby, to avoid exponentials of u_kn.

    weights : (n_states, n_samples) exp(f_k - u_kn) / mixture at the reference
    """

    def __init__(self, u_kn: Floats, n_k: Ints, start: Floats) -> None:
        self._u, self._n, self._there = u_kn, n_k, np.flatnonzero(n_k > 0)
        self._set_reference(start)

    def _set_reference(self, f: Floats) -> None:
        self._reference = f
        self._weights = np.exp(f[:, None] - self._u - _log_mixture(self._u, self._n, f))

    def _at(self, f: Floats) -> tuple[Floats, Floats]:
        """Return the factors that rescale the reference weights: for states (n_states,) and samples (n_samples,)."""
        if not np.abs(f - self._reference).max() < FAR:
            self._set_reference(f)
        factors = np.exp(f - self._reference)
        return factors, 1 / ((self._n * factors) @ self._weights)

    def self_consistent(self, f: Floats) -> Floats:
        """Return the next f_k of self-consistent iteration, 0 for the first."""
        factors, of_samples = self._at(f)
        sums = factors * (self._weights @ of_samples)
        if (sums > 0).all():
            found: Floats = f - np.log(sums)
        else:  # all weights of a state underflow
            found = -_log_sum(-self._u - _log_mixture(self._u, self._n, f), axis=1)
        found -= found[0]
        return found

    def newton(self, f: Floats) -> Floats:
        """Return the result of a Newton step, or `f` itself if the step does not reduce the residual."""
        (factors, of_samples), there = self._at(f), self._there
        n, weights = self._n[there], factors[there, None] * self._weights[there] * of_samples
        slope = n * weights.sum(axis=1) - n
        hessian = np.diag(n * weights.sum(axis=1)) - n[:, None] * (weights @ weights.T) * n
        step, *_ = np.linalg.lstsq(hessian[1:, 1:], slope[1:], rcond=None)
        if not np.abs(step).max() < FAR:
            return f
        moved = f.copy()
        moved[there[1:]] -= step
        moved = self.self_consistent(moved)
        before, after = (np.abs(self.self_consistent(of) - of).max() for of in (f, moved))
        return moved if np.isfinite(after) and after < before else f


def _shared(u_kn: Floats, n_k: Ints, f_k: Floats) -> Floats:
    """Return the overlap matrix, (n_states, n_states)."""
    weights = np.exp(f_k[:, None] - u_kn - _log_mixture(u_kn, n_k, f_k))
    found: Floats = (weights @ weights.T) * n_k
    return found
