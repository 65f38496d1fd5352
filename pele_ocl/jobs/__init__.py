"""Jobs: records of many items, in this process or by workers, written down as they are computed, resumed, in shards
that merge.

    from pele_ocl import EnergySpec, jobs

    for record in jobs.run(EnergySpec(), ["a.pdb", "b.pdb"], journal="energies.jsonl", workers=4):
        print(record.structure, record.error or record["energy"]["total"])

A name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names, present

if TYPE_CHECKING:  # the same names as below, for checkers and editors
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

if not TYPE_CHECKING:  # names by the file that has them; others than in __all__ are for tests
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
        """A name of a file of this room, or the Spec of a quantity under the name that it had here."""
        return present(f"jobs.{name}", name) if name in _FORMER else _load(name)


def __dir__() -> list[str]:
    return __all__
