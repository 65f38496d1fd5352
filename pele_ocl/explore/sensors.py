"""Sensors of explorers: values of metrics and trackers, and settings that depend on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from .control.conditions import any_holds
from .control.simulation import ACCEPTED, ENERGY, SINCE, STEP, TRACKERS, Change, MetricBlock, SimulationTask
from .metrics import Metric, Random, States

# Column names of metrics without a tag.
_COLUMNS = {"bindingEnergy": "Binding Energy", "rmsd": "RMSD by Selection"}
_ANGSTROMS = ("rmsd", "com_distance", "distanceToPoint")
# Units of metrics by type; others are dimensionless.
_UNITS = {
    "bindingEnergy": "kcal/mol", "internalEnergy": "kcal/mol", **dict.fromkeys(_ANGSTROMS, "\u00c5"),
    "atomsAngle": "degrees", "atomsDihedral": "degrees",
}  # fmt: skip
CHANGING = ("parameters", "perturbation", "anm")  # blocks of a task that may differ between explorers


def column_of(block: MetricBlock) -> str:
    """Return the column name of a metric."""
    return block.tag or _COLUMNS.get(block.kind, block.kind)


def title_of(block: MetricBlock) -> str:
    """Return the column name of a metric with its unit."""
    unit = _UNITS.get(block.kind)
    return column_of(block) if unit is None else f"{column_of(block)}, {unit}"


@dataclass(frozen=True)
class Sensor:
    """Metric or tracker of a task.

    block : block of the control file; metric : None for a tracker
    """

    block: MetricBlock
    metric: Metric | None

    @property
    def is_shown(self) -> bool:
        """True if it is a column of reports; random numbers are not, as in PELE."""
        return self.block.is_logged and not isinstance(self.metric, Random)

    @property
    def column(self) -> str:
        """Column name."""
        return column_of(self.block)


class Sensors:
    """Current values of the sensors of explorers.

    accepted : (n,) numbers of accepted steps; since : (n,) steps since the last accepted one; energies : (n,) kcal/mol
    values : (n_sensors, n) metrics of the last accepted states
    """

    def __init__(self, sensors: Sequence[Sensor], energies: Floats) -> None:
        self.sensors = tuple(sensors)
        n = len(energies)
        self.energies = np.array(energies, np.float64)
        self.accepted, self.since = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.values = np.full((len(self.sensors), n), np.nan)

    @property
    def columns(self) -> list[str]:
        """Names of the sensors' columns in reports."""
        default = (ENERGY, ACCEPTED)  # columns of all reports
        return [sensor.column for sensor in self.sensors if sensor.is_shown and sensor.block.kind not in default]

    def measure(self, rows: Sequence[int], states: States) -> None:
        """Compute the metrics of rows. states : states of these rows"""
        chosen = list(rows)
        for k, sensor in enumerate(self.sensors):
            if chosen and sensor.metric is not None and not isinstance(sensor.metric, Random):
                self.values[k, chosen] = sensor.metric.evaluate(states)

    def draw(self, states: States) -> None:
        """Draw the random numbers of all rows."""
        for k, sensor in enumerate(self.sensors):
            if isinstance(sensor.metric, Random):
                self.values[k] = sensor.metric.evaluate(states)

    def count(self, rows: Sequence[int], accepted: NDArray[np.bool_], energies: Floats) -> None:
        """Count a step of rows. accepted : mask (n,) of all rows; energies : (n,) energies of all rows, kcal/mol"""
        self.accepted += accepted
        self.since[list(rows)] += 1
        self.since[accepted] = 0
        self.energies = np.array(energies, np.float64)

    def row(self, k: int, step: int) -> list[float]:
        """Return the values of explorer k for a row of its report. step : number of steps made"""
        trackers = self._trackers(k, step + 1)
        shown = (
            (j, sensor)
            for j, sensor in enumerate(self.sensors)
            if sensor.is_shown and sensor.block.kind not in (ENERGY, ACCEPTED)
        )
        return [
            float(self.values[j, k]) if sensor.metric is not None else trackers[sensor.block.kind]
            for j, sensor in shown
        ]

    def of(self, k: int, step: int) -> dict[str, float]:
        """Return the values that conditions of explorer k use before a step, by name."""
        tagged = {sensor.block.tag: float(self.values[j, k]) for j, sensor in enumerate(self.sensors)}
        return {**tagged, **self._trackers(k, step)}

    def _trackers(self, k: int, step: int) -> dict[str, float]:
        values = (float(self.energies[k]), float(self.accepted[k]), float(step), float(self.since[k]))
        return dict(zip((ENERGY, ACCEPTED, STEP, SINCE), values, strict=True))

    def go_on(self, before: Sensors, energies: Floats) -> None:
        """Take over the counts from the previous task. energies : (n,) kcal/mol"""
        self.accepted, self.since = before.accepted.copy(), before.since.copy()
        self.energies = np.array(energies, np.float64)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state needed to continue."""
        return {"energies": self.energies, "accepted": self.accepted, "since": self.since, "values": self.values}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state returned by `state`."""
        for name in self.state():
            setattr(self, name, np.array(state[name]))


def changed(blocks: Mapping[str, Any], changes: Sequence[Change], values: Mapping[str, float]) -> dict[str, Any]:
    """Apply changes of settings in order, according to their conditions.

    blocks : blocks of an explorer, by the names in CHANGING; values : values of all sensors
    """
    found = dict(blocks)
    for change in changes:
        wanted = change.then if any_holds(change.conditions, values) else change.otherwise
        for name, settings in wanted.items():
            if found.get(name) is not None:
                found[name] = replace(found[name], **settings)
    return found


def changing_blocks(task: SimulationTask) -> dict[str, Any]:
    """Return the initial blocks of a task that may differ between explorers."""
    return {name: getattr(task, name) for name in CHANGING}


__all__ = ["CHANGING", "TRACKERS", "Sensor", "Sensors", "changed", "changing_blocks"]
