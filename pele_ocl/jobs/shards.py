"""How a work is divided and where it is computed: by processes, by a Dask cluster, in shards of a SLURM array."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from ..common.arguments import text
from ..common.errors import FormatError, InputError, KeywordError

S = TypeVar("S", bound="Sequence[object]")
T = TypeVar("T")

_WORDS = re.compile(r"(\d{1,6})/(\d{1,6})")


@dataclass(frozen=True)
class Shard:
    """Part `number`, from 1, of `count`."""

    number: int
    count: int

    @classmethod
    def of(cls, words: str) -> Shard:
        """Read a shard from a text such as 3/10. Raises InputError for another."""
        match = _WORDS.fullmatch(words.strip())
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise InputError(
                f"the shard is {words[:40]!r}; expected a number from 1 and how many there are, as in 3/10"
            )
        return cls(int(match[1]), int(match[2]))

    @classmethod
    def given(cls, value: Shard | str | None) -> Shard | None:
        """Convert a function's keyword `shard`; None means all. Raises InputError for anything else."""
        return value if value is None or isinstance(value, Shard) else cls.of(text("shard", value))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def part(self, items: S, what: str) -> S:
        """Return its items, which are consecutive; what : name of the items for errors. Raises InputError if there are
        fewer than shards."""
        n = len(items)
        if n < self.count:
            raise InputError(f"{n:,} {what} cannot be divided among {self.count:,} shards; use fewer shards")
        part = items[n * (self.number - 1) // self.count : n * self.number // self.count]
        return part  # type: ignore[return-value]  # a slice is of the same type

    def path(self, output: Path) -> Path:
        """Return the name of its output file: energies.h5 becomes energies.3of10.h5."""
        return output.with_name(f"{output.stem}.{self.number}of{self.count}{output.suffix}")


@dataclass(frozen=True)
class Place:
    """Where to compute: this process, processes on this machine, or a Dask cluster.

    workers : processes of this machine to start; scheduler : the address of a Dask scheduler, or its file
    device : the choice for each worker, as in PELE_OCL_DEVICE
    """

    workers: int | None = None
    scheduler: str | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.scheduler is not None:
            raise KeywordError("choose one of `workers` and `scheduler`")
        if self.workers is not None and (not isinstance(self.workers, int) or self.workers < 1):
            raise InputError(f"workers is {self.workers!r}; expected a number from 1 on")

    @property
    def is_remote(self) -> bool:
        """True if other processes compute."""
        return self.workers is not None or self.scheduler is not None


HERE = Place()


@dataclass(frozen=True)
class Run:
    """How a computation runs, and what it writes.

    output : file of the results; resume : True to continue what an interrupted run left
    workers : processes of this machine; scheduler : of a Dask cluster; shard : "K/N", the part of the work to do
    device : of a process that computes; progress : called with the fraction done, 0 to 1
    call : facts of the program and the call, for files; by default the program and its version
    keep : False for a trajectory's statistics alone
    errors : "record" for NaN and a message in `errors` where a structure, model or frame fails; "raise" for the error,
        which says before any work where a file does not exist
    """

    output: Path | None = None
    resume: bool = False
    workers: int | None = None
    scheduler: str | None = None
    shard: Shard | None = None
    device: str | None = None
    progress: Callable[[float], None] | None = None
    call: Mapping[str, object] | None = None
    keep: bool = True
    errors: Literal["raise", "record"] = "record"

    def __post_init__(self) -> None:
        Place(self.workers, self.scheduler)  # which refuses both together

    @property
    def place(self) -> Place:
        """Place of the computation."""
        return Place(self.workers, self.scheduler, self.device)

    def without_failures(self, found: T) -> T:
        """Return a result; raise InputError if parts of it failed and `errors` is "raise"."""
        failed: Mapping[int, str] = getattr(found, "errors", {})
        if self.errors == "raise" and failed:
            raise InputError(failed[min(failed)])
        return found

    def refuse_sharing(self, reason: str) -> None:
        """Raise InputError if the work is to be shared; reason : why there is none to share"""
        for name in ("workers", "scheduler", "shard"):
            if getattr(self, name) is not None:
                raise KeywordError(f"`{name}` shares the work on several structures, or on frames; {reason}")


def require_all(facts: Mapping[Path, Mapping[str, object]]) -> list[Path]:
    """Find the files of all shards, in their order.

    facts : of each file's job, the same in all but for `shard`

    Raises FormatError for a file that is of no shard, and unless each shard of one job is there once.
    """
    by_number, wholes, counts = dict[int, Path](), list[Mapping[str, object]](), set[int]()
    for path, of in facts.items():
        if "shard" not in of:
            raise FormatError(f"{path}: is not a shard; give the files that runs with `shard` wrote")
        shard = Shard.of(str(of["shard"]))
        if shard.number in by_number:
            raise FormatError(f"{path}: is the shard {shard}, as {by_number[shard.number]} is; give each once")
        by_number[shard.number] = path
        counts.add(shard.count)
        wholes.append({name: value for name, value in of.items() if name != "shard"})
        if wholes[-1] != wholes[0] or len(counts) > 1:
            raise FormatError(f"{path}: is of another run than {next(iter(facts))}; give the shards of one")
    missing = sorted(set(range(1, counts.pop() + 1)) - set(by_number))
    if missing:
        raise FormatError(
            f"{len(missing):,} shards are missing, the first is {missing[0]}; run them, or give them, too"
        )
    return [by_number[number] for number in sorted(by_number)]
