"""Jobs: records of many items, here or by workers, written down as they come, resumed, in shards that merge.

    from pele_ocl import jobs

    for record in jobs.run(jobs.EnergySpec(), ["a.pdb", "b.pdb"], journal="energies.jsonl", workers=4):
        print(record.structure, record.error or record["energy"]["total"])

A name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names

if TYPE_CHECKING:  # the same names as below, for checkers and editors
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

__all__ = [
    "SCHEMA",
    "EnergySpec",
    "Journal",
    "MinimizeSpec",
    "NonbondSpec",
    "Place",
    "Reading",
    "Record",
    "RefineSpec",
    "RelaxSpec",
    "Shard",
    "SimulateSpec",
    "SolventSpec",
    "Spec",
    "StructureSpec",
    "merged",
    "read_journal",
    "run",
    "shared",
]

if not TYPE_CHECKING:  # names by the file that has them; others than in __all__ are for tests
    __getattr__ = lazy_names(
        __name__,
        {
            "energy": "EnergySpec",
            "explore": "Exploration ExploreWork ForceFieldFiles Steps task_seed",
            "explore_files": "ends_of said_of",
            "journal": "Journal merged read_journal",
            "minimize": "MinimizeSpec",
            "nonbond": "NonbondSpec",
            "places": "claim core_groups",
            "reading": "Reading",
            "records": "Record SCHEMA",
            "refine": "RefineSpec",
            "relax": "RelaxSpec",
            "running": "run",
            "shards": "Shard",
            "sharing": "Place shared",
            "simulate": "SimulateSpec",
            "solvent": "SolventSpec",
            "spec": "Spec StructureSpec",
            "tasks": "WorkersDiedError in_order",
            "worker_start": "WORKER_ENVIRONMENT",
            "workers": "at_scheduler connected",
        },
    )


def __dir__() -> list[str]:
    return __all__
