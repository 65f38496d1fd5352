"""Findings about a kernel, and the result of a check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from ..report import Report, Reported

KINDS = {
    "compile": "it does not compile",
    "signature": "its arguments do not match the quantity",
    "crash": "it crashes, is aborted by the device, or does not end",
    "out-of-bounds": "it reads or writes outside of arrays",
    "race": "work-items write, or write and read, one element at the same time",
    "same-value": "work-items write one element at the same time, all the same value; a note",
    "barrier": "a barrier is missing",
    "divergence": "some work-items of a group do not reach a barrier",
    "uninitialised": "a value is used before it is set",
    "not-written": "elements of the output are never written, or only with zeros",
    "not-a-number": "results are infinite or NaN",
    "writes-input": "an input array is overwritten",
    "sign": "signs are wrong",
    "factor": "a constant factor is wrong",
    "off-by-one": "one too many or too few",
    "partial-group": "the last work-group, which is not full, is wrong",
    "own-pair": "an atom's pair with itself is wrong",
    "axes": "axes are exchanged, or numbers are in the wrong places",
    "not-added": "a value replaces a sum",
    "absolute": "signs are lost",
    "precision": "digits are lost: float for double, or one long sum in float",
    "formula": "another formula",
    "wrong": "wrong in another way",
}


@dataclass(frozen=True)
class Finding:
    """A fault of a kernel.

    kind : one of KINDS; sentence : description of the fault, and advice
    line : line in the kernel's file; None if unknown
    cases : names of the sizes with this fault
    access : "read" or "write", of an array, out of bounds; None for other kinds
    """

    kind: str
    sentence: str
    line: int | None = None
    cases: tuple[str, ...] = ()
    access: str | None = None

    def __str__(self) -> str:
        at = "" if self.line is None else f"line {self.line}: "
        shown = ", ".join(self.cases[:3]) + (f" and {len(self.cases) - 3} more" if len(self.cases) > 3 else "")
        return f"{at}{self.sentence}{f' ({shown})' if shown else ''}"


@dataclass(frozen=True)
class CaseResult:
    """Result for one size. error : largest error of an element, relative to its terms; None if not finite"""

    name: str
    is_right: bool
    error: float | None


@dataclass(frozen=True)
class LadderTime:
    """Time of a kernel. name : variant of the ladder, or the checked kernel; work : description of the input"""

    name: str
    seconds: float
    work: str


@dataclass(frozen=True, repr=False)
class CheckResult(Reported):
    """Result of `check_kernel`.

    quantity : one of QUANTITIES; kernel : its name; device : device used; precision : float32 or float64
    findings : faults, empty if the kernel is correct; notes : possible improvements
    cases : results for all sizes
    rungs : times, beginning with the checked kernel; empty if it is wrong
    simulator : program used to detect races and invalid accesses; None if none is installed, or the kernel cannot be
        run

    >>> from pathlib import Path
    >>> source = "kernel void total(global const float *x, int n, global float *sum) { *sum = x[0]; }"
    >>> result = pele_ocl.check_kernel(source, "sum", timing=False)
    >>> result.is_right, result.findings[0].kind
    (False, 'signature')
    """

    quantity: str
    kernel: str | None
    device: str
    precision: str | None
    findings: tuple[Finding, ...]
    cases: tuple[CaseResult, ...] = ()
    rungs: tuple[LadderTime, ...] = ()
    simulator: str | None = None
    notes: tuple[Finding, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    @property
    def is_run(self) -> bool:
        """Whether the kernel was run, since it compiles and has valid arguments."""
        return not {each.kind for each in self.findings} & {"compile", "signature"}

    def __repr__(self) -> str:
        said = f"{len(self.findings)} found: {self.findings[0]}" if self.findings else "right"
        sizes = (
            f", {sum(case.is_right for case in self.cases)} of {len(self.cases)} sizes correct" if self.cases else ""
        )
        return f"CheckResult({self.kernel} as {self.quantity}, on {self.device}: {said}{sizes})"

    def table(self) -> Report:
        """Return a table with the kind, line, sentence and sizes of each finding and note."""
        rows = (*self.findings, *self.notes)
        lines = np.ma.masked_equal([-1 if of.line is None else of.line for of in rows], -1)
        columns: dict[str, Any] = {"kind": np.array([of.kind for of in rows], str), "line": lines}
        columns["sentence"] = np.array([of.sentence for of in rows], str)
        columns["sizes"] = np.array([", ".join(of.cases) for of in rows], str)
        facts = {name: getattr(self, name) for name in ("quantity", "device", "precision", "simulator", "is_right")}
        return Report(f"Check of {self.kernel} as {self.quantity}", columns, facts)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table as .h5, .csv or .json."""
        self.table().save(path)

    def to_json(self) -> dict[str, Any]:
        """Return the result in JSON form."""
        return {**asdict(self), "is_right": self.is_right}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> CheckResult:
        """Create a result from the data of `to_json`."""
        fields = {name: value for name, value in values.items() if name != "is_right"}
        for name in ("findings", "notes"):
            fields[name] = tuple(Finding(**{**each, "cases": tuple(each["cases"])}) for each in values[name])
        fields["cases"] = tuple(CaseResult(**each) for each in values["cases"])
        fields["rungs"] = tuple(LadderTime(**each) for each in values["rungs"])
        return cls(**fields)


def merged(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Merge findings with the same kind, line and sentence, and combine their sizes."""
    joined: dict[tuple[str, int | None, str], Finding] = {}
    for each in findings:
        key = each.kind, each.line, each.sentence
        before = joined[key].cases if key in joined else ()
        cases = (*before, *(name for name in each.cases if name not in before))
        joined[key] = replace(each, cases=cases)
    return tuple(joined.values())
