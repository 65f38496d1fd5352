"""Check of a kernel in separate processes, which protects the caller from crashes and endless loops."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..common.arguments import checked, choice, flag, text, whole_number
from ..common.errors import DeviceError, InputError
from ..opencl import Device, get_device
from ..opencl.building import require_linker
from ..opencl.device import is_of_a_run
from .compiling import compiled
from .diagnosis import examined
from .findings import CaseResult, CheckResult, Finding, merged
from .quantities import QUANTITIES, Quantity
from .running import Launch, Runner
from .simulator import findings_of, lines_of_writes, same_values, simulated, simulator
from .timing import timed

FAR_OUTSIDE = "it reads or writes far outside its arrays"
ENDLESS = "an infinite loop, a barrier that some work-items do not reach, or far too much work"
ENDED_FOR_TIME = tuple(-getattr(signal, name) for name in ("SIGPROF", "SIGKILL") if hasattr(signal, name))
DONE = "done"  # last line of a process that finished
MOST_SECONDS = 120.0  # wall time of a check
SECONDS_OF_A_SIZE = 10.0  # processor time per size, because wall time depends on other processes
SECONDS_MORE = 10.0  # wall time for the simulator after a kernel has timed out
MOST_ITEMS = 4096
# Work-group sizes. For points, more than one along each axis, so that every axis needs a bounds check.
GROUPS = {"one": (1,), "point": (16, 2, 2), "plane": (16, 4)}
POINTS_PER_ITEM = r"\bPOINTS *= *(\d+)"  # matches `enum { POINTS = 4 };` in a kernel


def limit_computing(seconds: float) -> None:
    """End this process by SIGPROF after the given processor time; 0 for no limit.

    Windows has no such timer; there, processes are limited by wall time.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def in_this_process(request: dict[str, Any], device: Device) -> CheckResult:
    """Check or time a kernel in this process. request : from `check_kernel`, in JSON form"""
    *_, result = step_by_step(request, device)
    return result


def step_by_step(request: dict[str, Any], device: Device) -> Iterator[CheckResult]:
    """Yield the result after each size, small sizes first, because a large one may never end."""
    quantity, is_simulated = QUANTITIES[request["quantity"]], request["is_simulated"]
    found, findings = compiled(request["source"], quantity, device, request["kernel"])
    if found is None:
        yield CheckResult(quantity.name, request["kernel"], str(device), None, tuple(findings))
        return
    result = CheckResult(quantity.name, found.kernel, str(device), found.precision, ())
    if found.precision == "float64" and not device.has_float64:
        yield replace(result, findings=(Finding("compile", f"{device} has no double; use float"),))
        return
    yield result  # compilation does not count towards the time limit of the first size
    launch = _launch(request, quantity, found.group)
    runner = Runner(device, found, quantity, launch, is_guarded=not is_simulated)
    cases = quantity.cases(launch.items_per_group)
    if is_simulated:
        for case in cases:
            if case.is_simulated:
                runner.outcome(case)
        yield result
    elif request["is_timed"]:
        yield replace(result, rungs=tuple(timed(runner, cases)))
    else:
        try:
            for wrong, results in examined(runner, cases):
                result = replace(result, findings=wrong, cases=results)
                yield result
        except DeviceError as error:
            if not is_of_a_run(error):
                raise
            crash = Finding("crash", f"the device aborts it: {FAR_OUTSIDE}", None, (cases[len(result.cases)].name,))
            yield replace(result, findings=(*result.findings, crash))


def _launch(request: dict[str, Any], quantity: Quantity, asked: tuple[int, ...] | None) -> Launch:
    """Return the launch: from the request, the kernel source, or the defaults of the quantity, in this order."""
    name = request["launch"] or next(iter(quantity.launches))
    group = GROUPS.get(name, (64,))
    said = re.search(POINTS_PER_ITEM, request["source"])
    points = request["points_per_item"] or (int(said[1]) if said else 1)
    return Launch(quantity.launches[name], tuple(request["group"] or asked or group), points)


@checked
def check_kernel(
    source: str, quantity: str, *, kernel: str | None = None, launch: str | None = None,
    group: Sequence[int] | None = None, points_per_item: int | None = None, device: str | int | None = None,
    timing: bool = True,
) -> CheckResult:  # fmt: skip
    """Check your kernel against the reference, and compare its speed with the variants of this package.

    source : OpenCL C source code; docs/check.md lists the possible kernel arguments
    quantity : "sum", "potmap", "born", "solvent", "pair-energy" or "nonbond"
    kernel : name of the kernel, only needed if there are several
    launch : what a work-item computes: "atom", "pair", "point", "number", or a point of one "plane". "one" means a
        single work-item, "group" a work-group for each atom. The default is the first one listed in docs/check.md
    group : work-group size along each axis; by default as in the kernel, or 64
    points_per_item : points along x, or elements, per work-item; by default the kernel's constant POINTS, or 1
    device : number in `list_devices()`, or part of the name
    timing : whether to time a correct kernel

    The kernel runs on difficult sizes in a separate process. This is not a sandbox: only check kernels that you trust.
    If oclgrind is installed, it is used to detect races and invalid accesses. Raises InputError for an unknown quantity
    or launch, and DeviceError.

    >>> source = "kernel void total(global const float *x, int n, global float *sum) { *sum = x[0]; }"
    >>> result = pele_ocl.check_kernel(source, "sum", timing=False)
    >>> result.is_right
    False
    >>> result.table()["kind"][0].item()
    'signature'
    """
    choice("quantity", quantity, QUANTITIES)
    if launch is not None:
        choice("launch", launch, QUANTITIES[quantity].launches)
    sizes = None if group is None else list(group) if isinstance(group, tuple | list) else [group]
    flag("timing", timing)
    chosen = get_device(device)
    require_linker(chosen)  # a missing linker would look like a crash of the kernel
    request = dict(
        source=text("source", source), quantity=quantity, kernel=None if kernel is None else text("kernel", kernel),
        launch=launch, group=None if sizes is None else [_items("group", each) for each in sizes],
        points_per_item=None if points_per_item is None else _items("points_per_item", points_per_item),
        is_timed=False, is_simulated=False, most_seconds=SECONDS_OF_A_SIZE,
    )  # fmt: skip
    with _Processes() as processes:
        log = processes.folder / "report"
        plain = processes.started(request, str(chosen.index), None)
        watched = None if simulator() is None else processes.started(request | {"is_simulated": True}, None, str(log))
        result = _result(plain, request, str(chosen))
        if watched is not None:
            watched.ended(SECONDS_MORE if plain.is_endless else MOST_SECONDS)
        if watched is not None and result.is_run:
            more, notes = _seen(processes, request, log, plain.is_endless)
            result = replace(result, findings=together(more, result.findings), notes=notes, simulator=simulator())
        if not result.is_right or not timing:
            return result
        times = _result(processes.started(request | {"is_timed": True}, str(chosen.index), None), request, str(chosen))
        return replace(result, findings=times.findings, rungs=times.rungs)


def _seen(
    processes: _Processes, request: dict[str, Any], log: Path, is_endless: bool
) -> tuple[list[Finding], tuple[Finding, ...]]:
    """Return the findings in the simulator's report, and notes about writes of equal values to one element.

    If the report has several writes to one element, the simulator is run again without reporting equal values.
    """
    report = log.read_text() if log.exists() else ""
    lines = lines_of_writes(report)
    if not lines:
        return findings_of(report, request["source"], _place(request)), ()
    log.unlink()
    again = processes.started(request | {"is_simulated": True}, None, str(log), same_values=False)
    again.ended(SECONDS_MORE if is_endless else MOST_SECONDS)
    found = findings_of(log.read_text() if log.exists() else "", request["source"], _place(request))
    return found, tuple(same_values(lines, found))


def _place(request: dict[str, Any]) -> str:
    """Return a description of the index of an element; "" if several work-items add to the same element."""
    return "" if request["launch"] == "atom" else QUANTITIES[request["quantity"]].place


def _items(name: str, value: object) -> int:
    """Check a number of work-items or points."""
    return whole_number(name, value, least=1, most=MOST_ITEMS)


@dataclass(frozen=True, eq=False)
class _Process:
    """A checking process. answers : file with its results, separate from output of the kernel"""

    process: subprocess.Popen[str]
    answers: Path

    def ended(self, most_seconds: float = MOST_SECONDS) -> tuple[str, bool]:
        """Wait for the process. Returns its stderr, and whether it ended in time."""
        try:
            return self.process.communicate(timeout=most_seconds)[1], True
        except subprocess.TimeoutExpired:
            self.end()
            return self.process.communicate()[1], False

    def end(self) -> None:
        """Kill the process and its children, if still running."""
        if self.process.poll() is None:
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)  # started in a new session
            else:
                self.process.kill()
            self.process.wait()

    @property
    def is_endless(self) -> bool:
        """Whether the process was killed because it took too long."""
        return self.process.returncode in ENDED_FOR_TIME

    def lines(self) -> list[str]:
        """Return the complete lines of the results file."""
        text = self.answers.read_text(encoding="utf-8") if self.answers.exists() else ""
        return text.rpartition("\n")[0].splitlines()


class _Processes:
    """Context manager for checking processes and the folder with their files. All are removed at the end."""

    def __enter__(self) -> _Processes:
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)
        self._all: list[_Process] = []
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._all:
            each.end()
        self._folder.cleanup()

    def started(
        self, request: dict[str, Any], device: str | None, log: str | None, *, same_values: bool = True
    ) -> _Process:
        """Start a process. log, same_values : options of the simulator; `log` is None without one

        Output of the kernel is discarded: it could be mistaken for results, or fill a pipe.
        """
        command = [sys.executable, "-m", "pele_ocl.checking", *([device] if device else [])]
        command, environment = (command, None) if log is None else simulated(command, log, same_values=same_values)
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env=environment, start_new_session=True,
        )  # fmt: skip
        own = _Process(process, self.folder / f"answers-{len(self._all)}")
        self._all.append(own)
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # the process has already ended; detected by its results
            process.stdin.write(json.dumps(request | {"answers": str(own.answers)}))
            process.stdin.close()
        process.stdin = None
        return own


def _result(process: _Process, request: dict[str, Any], device: str) -> CheckResult:
    """Return the last result of a process, with a finding if the kernel crashed or timed out."""
    complaints, in_time = process.ended()
    lines = process.lines()
    answers = [json.loads(line) for line in lines if line != DONE]
    if answers and "error" in answers[-1]:
        raise InputError(answers[-1]["error"])
    unknown = CheckResult(request["quantity"], request["kernel"], device, None, ())
    result = CheckResult.from_dict(answers[-1]) if answers else unknown
    if DONE in lines:
        return result
    seconds = f"{MOST_SECONDS:.0f} s" if not in_time else f"{request['most_seconds']:.0f} s of computing"
    reason = (
        f"it does not end within {seconds}; a correct kernel takes milliseconds: {ENDLESS}"
        if process.is_endless
        else f"it crashes its process: {FAR_OUTSIDE}"
        if process.process.returncode < 0
        else f"it cannot be run: {' '.join(complaints.split())[-300:]}"
    )
    return replace(result, findings=(*result.findings, Finding("crash", reason)))


def together(simulated: Sequence[Finding], computed: Sequence[Finding]) -> tuple[Finding, ...]:
    """Merge findings of the simulator and from results, without consequences of the former.

    If both are about the same fault, the more specific computed finding is kept, with the line from the simulator.
    """
    seen, named = list(simulated), list[Finding]()
    for each in computed:
        same = next((other for other in seen if _is_same(each, other)), None)
        if same is not None:
            named.append(replace(each, line=same.line))
            seen.remove(same)
    left = [each for each in computed if not any(each.sentence == other.sentence for other in named)]
    follows = {"wrong", "not-a-number", "race", "out-of-bounds", "not-written", "partial-group"}
    if {each.kind for each in simulated} & {"barrier", "divergence"}:
        follows |= {"formula"}
    left = [each for each in left if not simulated or (each.kind not in follows and len(each.cases) != 1)]
    return merged([*named, *seen, *left])


def _is_same(computed: Finding, simulated: Finding) -> bool:
    """Return whether two findings are about the same fault, and the computed one is more specific."""
    if computed.kind == "axes":
        return simulated.kind == "race"
    return computed.kind == simulated.kind == "out-of-bounds" and computed.access == simulated.access


__all__ = ["CaseResult", "CheckResult", "Finding", "check_kernel", "in_this_process", "step_by_step"]
