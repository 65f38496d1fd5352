"""Distribution of work: local processes, Dask clusters, and shards for SLURM arrays."""

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
    """Part `number` of `count`, numbered from 1."""

    number: int
    count: int

    @classmethod
    def of(cls, words: str) -> Shard:
        """Parse a shard such as "3/10". Raises InputError for an invalid string."""
        match = _WORDS.fullmatch(words.strip())
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise InputError(
                f"the shard is {words[:40]!r}; expected the number of the shard, from 1, and how many there "
                "are, as in 3/10"
            )
        return cls(int(match[1]), int(match[2]))

    @classmethod
    def given(cls, value: Shard | str | None) -> Shard | None:
        """Convert a `shard` argument; None means all. Raises InputError for invalid values."""
        return value if value is None or isinstance(value, Shard) else cls.of(text("shard", value))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def part(self, items: S, what: str) -> S:
        """Return the consecutive items of this shard. what : name of the items, for errors

        Raises InputError if there are fewer items than shards.
        """
        n = len(items)
        if n < self.count:
            raise InputError(f"{n:,} {what} cannot be divided among {self.count:,} shards; use fewer shards")
        part = items[n * (self.number - 1) // self.count : n * self.number // self.count]
        return part  # type: ignore[return-value]  # a slice has the same type

    def path(self, output: Path) -> Path:
        """Return the output file of this shard: energies.h5 becomes energies.3of10.h5."""
        return output.with_name(f"{output.stem}.{self.number}of{self.count}{output.suffix}")

    @staticmethod
    def paths(output: Path) -> list[Path]:
        """Return the existing files of all shards."""
        whole = re.compile(rf"{re.escape(output.stem)}\.\d+of\d+{re.escape(output.suffix)}")
        return [path for path in sorted(output.parent.glob("*")) if whole.fullmatch(path.name)]


@dataclass(frozen=True)
class Place:
    """Where to compute: this process, processes on this machine, or a Dask cluster.

    workers : processes to start on this machine; scheduler : address of a Dask scheduler, or its file
    device : choice of device for each worker, as in PELE_OCL_DEVICE
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
        """Whether the work is computed by other processes."""
        return self.workers is not None or self.scheduler is not None


HERE = Place()


@dataclass(frozen=True)
class Run:
    """Options for running a computation and writing its results.

    output : file for the results; resume : True to continue an interrupted run
    workers : processes on this machine; scheduler : address or file of a Dask scheduler
    shard : "K/N", the part of the work to compute
    device : device of a process; progress : called with the fraction done, 0 to 1
    call : facts about program and call, for files; by default the program and its version
    keep : False to keep only the statistics of a trajectory, not its frames
    errors : "record" to store NaN, and a message in `errors`, for a failed structure, model or frame; "raise" to raise
        the error. Missing files then raise an error before any work
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
        Place(self.workers, self.scheduler)  # raises if both are given

    @property
    def place(self) -> Place:
        """Where the computation runs."""
        return Place(self.workers, self.scheduler, self.device)

    def without_failures(self, found: T) -> T:
        """Return the result unchanged. Raises InputError if a part failed and `errors` is "raise"."""
        failed: Mapping[int, str] = getattr(found, "errors", {})
        if self.errors == "raise" and failed:
            raise InputError(failed[min(failed)])
        return found

    def refuse_sharing(self, reason: str) -> None:
        """Raise InputError if the work should be distributed. reason : why this is not possible"""
        for name in ("workers", "scheduler", "shard"):
            if getattr(self, name) is not None:
                raise KeywordError(f"`{name}` distributes several structures, or frames; {reason}")


def require_all(facts: Mapping[Path, Mapping[str, object]]) -> list[Path]:
    """Return the files of all shards, in order.

    facts : of the job of each file, equal except for `shard`

    Raises FormatError if a file has no shard, or unless each shard of one job is given exactly once.
    """
    by_number, wholes, counts = dict[int, Path](), list[Mapping[str, object]](), set[int]()
    for path, of in facts.items():
        if "shard" not in of:
            raise FormatError(f"{path}: is not a shard; give files written by runs with `shard`")
        shard = Shard.of(str(of["shard"]))
        if shard.number in by_number:
            raise FormatError(f"{path}: is the shard {shard}, like {by_number[shard.number]}; give each once")
        by_number[shard.number] = path
        counts.add(shard.count)
        wholes.append({name: value for name, value in of.items() if name != "shard"})
        if wholes[-1] != wholes[0] or len(counts) > 1:
            raise FormatError(f"{path}: belongs to another run than {next(iter(facts))}; give the shards of one run")
    missing = sorted(set(range(1, counts.pop() + 1)) - set(by_number))
    if missing:
        raise FormatError(
            f"{len(missing):,} shards are missing, the first is {missing[0]}; run them, or give them as well"
        )
    return [by_number[number] for number in sorted(by_number)]
