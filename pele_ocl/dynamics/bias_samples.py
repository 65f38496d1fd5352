"""Samples of biased collective variables, and their reweighting; docs/theory/sampling.md."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Floats
from ..common.arguments import described, text
from ..common.errors import InputError
from ..energy.terms import Growing
from ..energy.terms.grid_bias import interpolated_at
from ..units import BOLTZMANN_KCAL
from .mbar import FreeEnergyResult, free_energy
from .simulation import Simulation


class BiasSamples:
    """Sample the variables of a bias and compute their unbiased free energy; pass it as `call` to `Simulation.run`.

    The weight of a sample is exp(V / (k_B T)), where V is the bias when the weights are read (Branduardi, Bussi and
    Parrinello, J. Chem. Theory Comput. 2012, 8, 2247). Sample only after metadynamics has filled the wells and its bias
    grows slowly. If every replica has a separate bias, the weights are normalized per replica.

    name : name of the bias term, such as Metadynamics, OPES or GridBias

        >>> import pele_ocl
        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> bias = pele_ocl.Metadynamics(pele_ocl.TorsionVariable([4, 6, 8, 14]), 0.35, 0.3, 10)
        >>> simulation, samples = pele_ocl.Simulation(atoms, 2, terms=[bias], timestep=1.0), pele_ocl.BiasSamples()
        >>> _ = simulation.run(20).run(40, every=10, call=samples)
        >>> samples.variables.shape, samples.free_energy(3, blocks=2).energies.shape
        ((4, 2, 1), (3,))
    """

    def __init__(self, name: str = "metadynamics") -> None:
        self._name = text("name", name)
        self._variables: list[Floats] = []
        self._temperatures: list[Floats] = []
        self._simulation: Simulation | None = None

    def __call__(self, simulation: Simulation) -> None:
        """Take a sample of all replicas."""
        if not isinstance(simulation, Simulation):
            raise InputError(f"the simulation is {described(simulation)}; expected a Simulation")
        if self._simulation is not None and self._simulation is not simulation:
            raise InputError("these samples belong to another simulation; create new ones for this one")
        if simulation.settings.exchange_every is not None and simulation.settings.exchange == "hamiltonian":
            raise InputError("replicas exchange their biases; use StateSamples and MBAR")
        values = simulation.variables(self._name)
        values[~np.isfinite(simulation.potential_energies)] = np.nan
        self._variables.append(values)
        self._temperatures.append(np.array(simulation.temperatures))
        self._simulation = simulation

    def __repr__(self) -> str:
        return f"BiasSamples({self._name!r}, {len(self._variables):,} times)"

    @property
    def variables(self) -> Floats:
        """Sampled variables, (n_times, n_rows, d); NaN for replicas that had stopped or have no energy."""
        self._sampled()
        return np.stack(self._variables)

    @property
    def log_weights(self) -> Floats:
        """Logarithms of the weights, (n_times n_rows,), by time, then by row; -inf where variables are NaN.

        Raises InputError for samples at several temperatures.
        """
        simulation, values = self._sampled(), self.variables
        term, ensemble = simulation.bias_term(self._name), simulation.ensemble
        kt = BOLTZMANN_KCAL * self._temperature
        together: dict[object, list[int]] = {}
        for k, atoms in enumerate(ensemble.atoms):
            together.setdefault(id(atoms) if isinstance(term, Growing) and term.shared else k, []).append(k)
        grids = ensemble.values(self._name, "grid")
        found = np.full(values.shape[:2], -np.inf)
        for rows in together.values():
            there = np.isfinite(values[:, rows]).all(axis=2)
            if not there.any():
                continue
            own = np.full(there.shape, -np.inf)
            own[there] = interpolated_at(np.asarray(grids[rows[0]]), term.axes, values[:, rows][there]) / kt
            own -= own.max()
            found[:, rows] = own - np.log(np.exp(own).sum() / (len(rows) * there.mean()))
        return found.ravel()

    def free_energy(
        self, bins: int | Sequence[ArrayLike], *, blocks: int = 5, names: Sequence[str] = ()
    ) -> FreeEnergyResult:  # fmt: skip
        """Compute the unbiased free energy of the variables. bins, blocks, names : as in `pele_ocl.free_energy`"""
        simulation, weights = self._sampled(), self.log_weights
        values = self.variables.reshape(len(weights), -1)
        there, units = np.isfinite(weights), [of.unit for of in simulation.bias_term(self._name).members]
        return free_energy(
            values[there], bins, self._temperature, log_weights=weights[there], blocks=blocks, names=names, units=units
        )

    @property
    def _temperature(self) -> float:
        self._sampled()
        found = np.unique(self._temperatures)
        if len(found) != 1:
            raise InputError("replicas have several temperatures; combine them with StateSamples and MBAR")
        return float(found[0])

    def _sampled(self) -> Simulation:
        if self._simulation is None:
            raise InputError("there are no samples yet; pass this object as `call` to `Simulation.run`")
        return self._simulation
