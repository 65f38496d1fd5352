"""Jobs compute many items in this process or by workers, with a journal to resume from, and shards.

    from pele_ocl import EnergySpec, jobs

    for record in jobs.run(EnergySpec(), ["a.pdb", "b.pdb"], journal="energies.jsonl", workers=4):
        print(record.structure, record.error or record["energy"]["total"])

Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names, present

if TYPE_CHECKING:  # the same names as below, for type checkers and editors
    from ..reading import Reading as Reading
    from .journal import Journal as Journal
    from .journal import merged as merged
    from .journal import read_journal as read_journal
    from .records import SCHEMA as SCHEMA
    from .records import Record as Record
    from .running import run as run
    from .shards import Place as Place
    from .shards import Shard as Shard
    from .sharing import shared as shared
    from .spec import Spec as Spec
    from .spec import StructureSpec as StructureSpec

__all__ = [
    "SCHEMA",
    "Journal",
    "Place",
    "Reading",
    "Record",
    "Shard",
    "Spec",
    "StructureSpec",
    "merged",
    "read_journal",
    "run",
    "shared",
]

_FORMER = "EnergySpec MinimizeSpec NonbondSpec RefineSpec RelaxSpec SimulateSpec SolventSpec".split()  # now pele_ocl.X

if not TYPE_CHECKING:  # names by module; those not in __all__ are for tests
    _load = lazy_names(
        __name__,
        {
            "journal": "Journal merged read_journal",
            "records": "Record SCHEMA",
            "running": "run",
            "shards": "Place Shard",
            "sharing": "shared",
            "spec": "Reading Spec StructureSpec",
        },
    )

    def __getattr__(name: str) -> object:
        """Import a name on first use, including Specs under their deprecated names in this package."""
        return present(f"jobs.{name}", name) if name in _FORMER else _load(name)


def __dir__() -> list[str]:
    return __all__
