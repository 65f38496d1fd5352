"""Jobs: records of many items, here or by workers, written down as they come, resumed, in shards that merge.

    from pele_ocl import jobs

    for record in jobs.run(jobs.EnergySpec(), ["a.pdb", "b.pdb"], journal="energies.jsonl", workers=4):
        print(record.structure, record.error or record["energy"]["total"])

A name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as in _HOMES, for checkers and editors
    from .energy import EnergySpec as EnergySpec
    from .journal import Journal as Journal
    from .journal import merged as merged
    from .journal import read_journal as read_journal
    from .minimize import MinimizeSpec as MinimizeSpec
    from .nonbond import NonbondSpec as NonbondSpec
    from .reading import Reading as Reading
    from .records import SCHEMA as SCHEMA
    from .records import Record as Record
    from .refine import RefineSpec as RefineSpec
    from .relax import RelaxSpec as RelaxSpec
    from .running import run as run
    from .shards import Shard as Shard
    from .sharing import Place as Place
    from .sharing import shared as shared
    from .simulate import SimulateSpec as SimulateSpec
    from .solvent import SolventSpec as SolventSpec
    from .spec import Spec as Spec
    from .spec import StructureSpec as StructureSpec

_HOMES = {
    "EnergySpec": "energy", "Journal": "journal", "MinimizeSpec": "minimize", "NonbondSpec": "nonbond",
    "Place": "sharing", "Reading": "reading", "Record": "records", "RefineSpec": "refine",
    "RelaxSpec": "relax", "SCHEMA": "records",
    "Shard": "shards", "SimulateSpec": "simulate", "SolventSpec": "solvent", "Spec": "spec", "StructureSpec": "spec",
    "merged": "journal", "read_journal": "journal", "run": "running", "shared": "sharing",
}  # fmt: skip

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """A public name, loaded now and kept."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
