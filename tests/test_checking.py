"""Check of kernels that others write: right ones pass, and what is wrong with others is found and named.

The first line of each kernel of tests/data/kernels says what it is checked as and what is to be found: a kind of
finding, its line, and if the simulator alone finds it.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyopencl as cl
import pytest
from click.testing import CliRunner
from conftest import DEVICES

from pele_ocl import DeviceError, FormatError, InputError, check_kernel
from pele_ocl.checking import KINDS, QUANTITIES, CheckResult, Finding
from pele_ocl.checking.check import in_this_process, together
from pele_ocl.checking.compiling import PLAIN, files_outside, plain_source, plain_words, read_source
from pele_ocl.checking.running import Runner
from pele_ocl.checking.simulator import findings_of, lines_of_writes, same_values, simulator
from pele_ocl.checking.timing import LADDERS
from pele_ocl.cli import main
from pele_ocl.cli.check import LAUNCHES, NAMES

KERNELS = Path(__file__).parent / "data" / "kernels"
HEAD = re.compile(r"// check: (\S+)(?: --launch (\w+))?(?: -> ([a-z-]+)(?: at line (\d+))?(, needs the simulator)?)?$")
DEVICE = DEVICES[0]
# Simulated in the ordinary suite, one of each kind; the others are slow, a second each.
SIMULATED = {"gradient_race", "sum_no_barrier", "map_one_atom_more", "map_no_last_barrier"}
CRASHING = {"sum_far_away"}

needs_simulator = pytest.mark.skipif(simulator() is None, reason="oclgrind is not installed")


@dataclass(frozen=True)
class Example:
    """A kernel with what its first line says."""

    name: str
    source: str
    quantity: str
    launch: str | None
    kind: str | None
    line: int | None
    is_simulated: bool

    @classmethod
    def of(cls, path: Path) -> Example:
        source = path.read_text()
        quantity, launch, kind, line, simulated = HEAD.match(source.partition("\n")[0]).groups()
        return cls(path.stem, source, quantity, launch, kind, line and int(line), bool(simulated))

    def check(self) -> CheckResult:
        """Check the kernel in this process."""
        asked = dict(source=self.source, quantity=self.quantity, launch=self.launch)
        without = dict.fromkeys(("kernel", "group", "points_per_item"))
        return in_this_process(asked | without | {"is_timed": False, "is_simulated": False}, DEVICE)


RIGHT = [Example.of(path) for path in sorted((KERNELS / "right").glob("*.cl"))]
WRONG = [Example.of(path) for path in sorted((KERNELS / "wrong").glob("*.cl"))]
COMPUTED = [each for each in WRONG if not each.is_simulated and each.name not in CRASHING]
WATCHED = [
    pytest.param(each, id=each.name, marks=[] if each.name in SIMULATED else [pytest.mark.slow])
    for each in WRONG
    if each.is_simulated
]


def of(*examples: Example) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("example", examples, ids=lambda example: example.name)


def test_there_are_enough_of_every_kind():
    assert len(WRONG) >= 20
    assert {each.quantity for each in RIGHT} == set(QUANTITIES)
    assert {each.kind for each in WRONG} <= set(KINDS)
    assert len({each.kind for each in WRONG}) >= 15


@of(*RIGHT)
def test_right_kernels_pass(example):
    result = example.check()
    assert result.findings == ()
    assert len(result.cases) >= 6
    assert all(case.is_right for case in result.cases)


@of(*COMPUTED)
def test_wrong_kernels_are_found_and_named(example):
    if example.name == "sum_one_float" and DEVICE.vendor == "INTEL":
        pytest.skip("Intel's compiler adds up in the lanes of a vector, which is exact enough")
    found = {each.kind: each for each in example.check().findings}
    assert set(found) == {example.kind}
    assert example.line in (None, found[example.kind].line)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gradient_last_partner", "the last partner is left out"),
        ("gradient_first_partner", "the first partner is left out"),
    ],
)
def test_a_partner_left_out_is_told_in_all_sizes(name, sentence):
    (finding,) = Example.of(KERNELS / "wrong" / f"{name}.cl").check().findings
    assert sentence in finding.sentence
    assert len(finding.cases) == 8


@pytest.mark.parametrize("statement", ["", "energies[0] = 0;"])
def test_zeros_are_not_said_to_be_unwritten(statement):
    source = f"kernel void zero(global float *energies) {{ {statement} }}"
    (finding,) = Example("zero", source, "pair-energy", None, None, None, False).check().findings
    assert "`energies` stays zero: it is never written, or only with zeros" in finding.sentence


@needs_simulator
@pytest.mark.parametrize("example", WATCHED)
def test_the_simulator_finds_lines(example):
    result = check_kernel(example.source, example.quantity, launch=example.launch, device=DEVICE.index)
    assert (example.kind, example.line) in {(each.kind, each.line) for each in result.findings}
    assert result.simulator
    assert not result.rungs


@needs_simulator
@pytest.mark.slow
@of(*RIGHT)
def test_the_simulator_finds_nothing_in_right_kernels(example):
    result = check_kernel(example.source, example.quantity, launch=example.launch, device=DEVICE.index)
    assert result.is_right
    assert result.rungs[0].seconds > 0


@of(*(each for each in WRONG if each.name in CRASHING))
def test_a_kernel_that_crashes_harms_nobody(example, monkeypatch):
    monkeypatch.setattr("pele_ocl.checking.check.simulator", lambda: None)
    result = check_kernel(example.source, example.quantity, launch=example.launch, device=DEVICE.index)
    assert [each.kind for each in result.findings] == ["crash"]


TWICE_AND_FAR_AWAY = """
kernel void one(const int n, global const float *values, global float *sums)
{
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += 2 * values[k];
    sums[n > 1000 ? 1000000000 : 0] = sum;
}
"""


def test_small_sizes_are_told_if_a_large_one_crashes(monkeypatch):
    monkeypatch.setattr("pele_ocl.checking.check.simulator", lambda: None)
    result = check_kernel(TWICE_AND_FAR_AWAY, "sum", launch="one", device=DEVICE.index)
    assert {each.kind for each in result.findings} == {"factor", "crash"}
    assert [case.name for case in result.cases][:2] == ["1 value", "2 values"]
    assert not any(case.is_right for case in result.cases)


def failing(routine: str, code: int) -> Callable[..., object]:
    """Make a run of a kernel that works for two sizes, and then has OpenCL fail, as it does on NVIDIA's GPUs."""
    right, sizes = Runner.outcome, set[str]()

    def outcome(self, case, **more):
        sizes.add(case.name)
        if len(sizes) > 2:
            error = cl.LogicError(cl._cl._ErrorRecord(msg="", code=code, routine=routine))
            raise DeviceError(f"the device refuses: {error}") from error
        return right(self, case, **more)

    return outcome


def test_a_device_that_fails_in_a_run_is_the_kernels_crash(monkeypatch):
    monkeypatch.setattr(Runner, "outcome", failing("clFinish", cl.status_code.INVALID_COMMAND_QUEUE))
    result = Example.of(KERNELS / "right" / "pair.cl").check()
    (finding,) = result.findings
    assert finding.kind == "crash"
    assert finding.sentence == "the device aborts it: it reads or writes far outside its arrays"
    assert len(result.cases) == 2
    assert len(finding.cases) == 1


def test_a_device_that_refuses_a_launch_is_told_as_such(monkeypatch):
    monkeypatch.setattr(Runner, "outcome", failing("clEnqueueNDRangeKernel", cl.status_code.INVALID_WORK_GROUP_SIZE))
    with pytest.raises(DeviceError, match="INVALID_WORK_GROUP_SIZE"):
        Example.of(KERNELS / "right" / "pair.cl").check()


ENDLESS = """
kernel void endless(const int n, volatile global float *sums) { while (n > 1 && sums[0] < 1) sums[0] += 0; }
"""


def test_a_kernel_that_does_not_end_is_told_so(monkeypatch):
    """The limit is of what the process computes, so that it does not depend on others on the same cores."""
    monkeypatch.setattr("pele_ocl.checking.check.simulator", lambda: None)
    monkeypatch.setattr("pele_ocl.checking.check.SECONDS_OF_A_SIZE", 1.0)
    result = check_kernel(ENDLESS, "sum", launch="one", device=DEVICE.index)
    finding = result.findings[-1]
    assert finding.kind == "crash"
    assert "it does not end within 1 s of computing; a correct kernel takes milliseconds: an infinite loop" in str(
        finding
    )


SOLUTIONS = KERNELS.parent.parent.parent / "docs" / "course" / "solutions"
PLACE = "map[(k * ny + j) * nx + i]"
OF_MAP = "the index of a point in `map` is (k * ny + j) * nx + i"
GROUPS = "POINTS * width * get_group_id(0) + get_local_id(0)"
OF_SUM = "each work-group writes one element of `sums`, with the index get_group_id(0)"


@pytest.mark.parametrize(
    ("name", "right", "wrong", "kinds", "sentence"),
    [
        ("gather", "|| j >= ny || k >= nz", "", "out-of-bounds", "last point along y and z must do nothing"),
        ("gather", "i >= nx", "i > nx", "out-of-bounds", "along x must do nothing; points go along x from 0 to nx - 1"),
        ("gather", PLACE, "map[(j * nz + k) * nx + i]", "axes", OF_MAP),
        ("gather", PLACE, "map[k * nz + j * ny + i]", "out-of-bounds", OF_MAP),
        ("gather", "rsqrt(dx", "1.0f / (int)sqrt(dx", "formula", "the distance is rounded to a whole number"),
        ("gather", " + dz * dz", "", "formula", "dz is left out of the distance"),
        ("gather", "corner.w * j", "j", "formula", "the spacing is left out: y is corner.y + corner.w * j"),
        ("gather", "corner.x + corner.w", "corner.w", "formula", "the corner is left out: x is"),
        ("gather", "corner.w * k", "corner.w * (k + 0.5f)", "formula", "half a spacing is added"),
        ("gather", "sum += atoms", "sum += 332.06f * atoms", "factor", "already include Coulomb's constant"),
        ("gather", "i = get_global_id(0)", "i = get_local_id(0)", "not-written", "counts within a group"),
        ("gather", "i = get_global_id(0)", "i = get_group_id(0)", "not-written", "is the number of a group"),
        ("gather", "k = get_global_id(2)", "k = get_global_id(1)", "not-written", "points whose y and z are equal"),
        ("gather", "float sum = 0;", "int sum = 0;", "formula", "the sum is rounded to a whole number at each step"),
        ("gather", "dy = y - atoms[a].y", "dy = y - atoms[a].z", "axes", "the point's y is compared with the atom's z"),
        ("gather", "dy = y - atoms[a].y", "dy = z - atoms[a].y", "axes", "the atom's y is compared with the point's z"),
        ("gather", "dz * dz)", "dz)", "formula", "dz is not squared"),
        ("gather", "z - atoms[a].z", "z + atoms[a].z", "formula", "coordinates are added"),
        ("gather", "dy * dy", "dx * dx", "axes", "dx is used instead of dy"),
        ("gather", "corner.w * j", "corner.w * k", "axes", "y uses the index of the point along z"),
        ("gather", "corner.y +", "corner.x +", "axes", "y uses the corner's x"),
        ("gather", "corner.w * i, y = corner.y + corner.w * j", "corner.w * j, y = corner.y + corner.w * i", "axes",
         "x and y have exchanged indices"),
        ("gather8", "x - atoms[a].x", "x - atoms[a].y", "axes", "the point's x is compared with the atom's y"),
        ("gather8", "j >= ny", "j > ny", "out-of-bounds", "beyond the last point along y must do nothing"),
        ("gather8", "i + c < nx", "i + c < nx - 1", "not-written", "the last points along x are never written"),
        ("gather8", "i >= nx", "!j || i >= nx", "not-written", "the first points along y are never written"),
        ("coalesced", GROUPS, "get_global_id(0)", "not-written", "groups overlap"),
        ("coalesced", GROUPS, "POINTS * get_global_id(0)", "not-written", "groups overlap"),
        ("coalesced", "if (i + c * width < nx) ", "", "out-of-bounds", "4 points needs its own test"),
        ("gather", PLACE, "map[k][j][i]", "compile", "one index, not one for each axis"),
        ("sum_tree", "get_global_size(0)", "GROUP", "formula", "values are counted several times"),
        ("sum_tree", "get_global_size(0)", "1", "formula", "values are counted several times"),
        ("sum_tree", "get_global_size(0)", "n", "formula", "values are left out"),
        ("sum_tree", "item + half_size", "half_size", "formula", "values are counted several times"),
        ("sum_tree", "+= values", "+= 332.06f * values", "factor", "the sum is 332.1 times what it should be"),
        ("sum_tree", "= parts[0]", "= 0.1f * parts[0]", "factor", "the sum is 0.1 times what it should be"),
        ("sum_tree", "+= values", "+= 2 * values", "factor", "the sum is twice what it should be"),
        ("sum_tree", "= parts[0]", "= parts[0] / n", "wrong", "the sum: wrong"),
        ("sum_tree", "get_group_id(0)", "get_global_id(0)", "out-of-bounds", OF_SUM),
        ("sum_tree", "item == 0) sums[", "get_global_id(0) == 0) sums[", "not-written", OF_SUM),
    ],
)  # fmt: skip
def test_slips_of_students_are_told_by_their_cause(name, right, wrong, kinds, sentence):
    source = (SOLUTIONS / f"{name}.cl").read_text()
    assert right in source
    asked = dict.fromkeys(("kernel", "launch", "group", "points_per_item"))
    asked |= {"quantity": "potmap"} if name != "sum_tree" else {"quantity": "sum", "points_per_item": 8}
    asked |= {"source": source.replace(right, wrong), "is_timed": False, "is_simulated": False}
    findings = in_this_process(asked, DEVICE).findings
    assert {each.kind for each in findings} == {kinds}
    assert sentence in findings[0].sentence


def test_a_fault_that_two_see_is_told_once_with_its_line():
    place = QUANTITIES["potmap"].place
    (race,) = findings_of(TWO_WRITES, "", place)
    assert race.sentence.endswith(f"a race: {place}")
    axes = Finding("axes", f"numbers are correct, but in the wrong places: {place}", None, ("2 points", "3 points"))
    (both,) = together([race], [axes])
    assert (both.kind, both.line, both.cases) == ("axes", 17, axes.cases)


def test_a_write_beyond_the_end_that_two_see_is_told_once_with_its_line():
    """A read is another fault."""
    report = "Invalid {} of size 4 at global memory address 0x1\n\tAt line {} (column 3) of input.cl:\n"
    writes, reads = (findings_of(report.format(kind, line), "") for kind, line in (("write", 17), ("read", 18)))
    assert [(each.kind, each.access, each.line) for each in (*writes, *reads)] == [
        ("out-of-bounds", "write", 17), ("out-of-bounds", "read", 18),
    ]  # fmt: skip
    beyond = Finding("out-of-bounds", "it writes beyond the end of `map`", None, ("2 points", "3 points"), "write")
    assert together(writes, [beyond]) == (replace(beyond, line=17),)
    assert {each.line for each in together([*writes, *reads], [beyond])} == {17, 18}
    assert together(reads, [beyond]) == tuple(reads)  # which the simulator would have seen


ADD = """
seen = 0;
seen = *to;
seen = atomic_cmpxchg(to, seen, as_int(as_float(seen) + value));
"""


def test_a_plain_read_beside_atomic_exchanges_is_told_as_such():
    report = (
        TWO_WRITES.replace("Write-write", "Read-write").replace("line 17", "line 4", 1).replace("line 17", "line 3")
    )
    (race,) = findings_of(report, ADD)
    assert (race.kind, race.line) == ("race", 3)
    assert "by no atomic operation while others change it by one" in race.sentence


@pytest.mark.parametrize("name", ["map_misspelt", "map_other_argument"])
def test_nothing_looked_for_races_in_a_kernel_that_cannot_be_run(name):
    path = KERNELS / "wrong" / f"{name}.cl"
    done = CliRunner().invoke(main, ["check", str(path), "--as", "potmap", "--device", str(DEVICE.index)])
    assert done.exit_code == 1
    assert "Wrong:" in done.output
    assert "races" not in done.output


def test_a_right_kernel_stands_on_the_ladder(tmp_path, monkeypatch):
    """By the command line, as text and as JSON, without a simulator, whose lack is told."""
    monkeypatch.setattr("pele_ocl.checking.check.simulator", lambda: None)
    path = KERNELS / "right" / "pair.cl"
    done = CliRunner().invoke(main, ["check", str(path), "--as", "pair-energy", "--device", str(DEVICE.index)])
    assert done.exit_code == 0, done.output
    assert "Right." in done.output
    assert "pair, yours" in done.output
    assert "pele-ocl[teach]" in done.output
    for rung in ("atomic", "rows", "offsets"):
        assert re.search(rf"^{rung} .*\d", done.output, re.MULTILINE)


def test_a_wrong_kernel_ends_with_exit_code_1(monkeypatch):
    monkeypatch.setattr("pele_ocl.checking.check.simulator", lambda: None)
    path = KERNELS / "wrong" / "pair_no_four.cl"
    asked = ["check", str(path), "--as", "pair-energy", "--device", str(DEVICE.index), "--json"]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 1
    answer = json.loads(done.stdout)
    assert not answer["is_right"]
    assert [each["kind"] for each in answer["findings"]] == ["factor"]
    assert "the 4 of Lennard-Jones is left out" in answer["findings"][0]["sentence"]
    assert json.loads(json.dumps(CheckResult.from_dict(answer).to_json())) == answer


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("<kernel>:7:5: error: use of undeclared identifier 'sun'", "`sun` is used, but no such variable"),
        ("error: text-00b2.cl:7:18: expected ';' at end of declaration", "a semicolon is missing"),
        ("t.cl:7:1: error: something unheard of", "the compiler says: something unheard of"),
    ],
)
def test_compilers_are_read_in_plain_words(message, sentence):
    (finding,) = plain_words(message)
    assert (finding.kind, finding.line) == ("compile", 7)
    assert sentence in finding.sentence


REPORT = """
Read-write data race at local memory address 0x1000000000040
    Kernel: f

    First entity:  Global(4,0,0) Local(4,0,0) Group(0,0,0)
    At line 20 (column 9) of text.cl:
      part[l] = sum;

    Second entity: Global(0,0,0) Local(0,0,0) Group(0,0,0)
    At line 23 (column 21) of text.cl:
      part[l] += part[l + n];

Uninitialized value written to local memory address 0x1000000000000
    Kernel: f
    At line 23 (column 13) of text.cl:
      part[l] += part[l + n];
"""


def test_reports_of_the_simulator_are_read_without_consequences():
    (finding,) = findings_of(REPORT, "")
    assert (finding.kind, finding.line) == ("barrier", 20)
    assert "with line 23" in finding.sentence
    assert "missing between the two lines: " in finding.sentence


TWO_READS = """
Invalid read of size 4 at local memory address 0x1000000000100
    Kernel: f
    Entity: Global(32,0,0) Local(32,0,0) Group(0,0,0)
    At line 14 (column 44) of text.cl:

Read-write data race at local memory address 0x1000000000080
    Kernel: f
    First entity:  Global(32,0,0) Local(32,0,0) Group(0,0,0)
    At line 14 (column 41) of text.cl:
    Second entity: Global(0,0,0) Local(0,0,0) Group(0,0,0)
    At line 14 (column 44) of text.cl:
"""


def test_work_items_that_should_not_act_miss_no_barrier():
    (finding,) = findings_of(TWO_READS, "")
    assert (finding.kind, finding.line) == ("out-of-bounds", 14)
    assert "reads outside an array in local memory: is each index less than the array's length?" in finding.sentence


TWO_WRITES = """
Write-write data race at global memory address 0x2000000000000
    Kernel: f
    First entity:  Global(1,0,0) Local(1,0,0) Group(0,0,0)
    At line 17 (column 5) of text.cl:
    Second entity: Global(0,0,0) Local(0,0,0) Group(0,0,0)
    At line 17 (column 5) of text.cl:
"""


def test_writes_of_one_value_are_a_note():
    lines = lines_of_writes(REPORT + TWO_WRITES)
    assert lines == [17]
    (note,) = same_values(lines, findings_of(REPORT, ""))
    assert (note.kind, note.line) == ("same-value", 17)
    assert not list(same_values(lines, findings_of(TWO_WRITES, "")))  # other values: a race
    result = CheckResult("sum", "f", "a device", "float32", (), notes=(note,))
    assert result.is_right
    assert CheckResult.from_dict(json.loads(json.dumps(result.to_json()))) == result


@needs_simulator
@pytest.mark.slow
def test_a_tree_whose_items_all_write_the_sum_is_right_with_a_note():
    source = (SOLUTIONS / "sum_tree.cl").read_text().replace("if (item == 0) sums", "sums")
    result = check_kernel(source, "sum", points_per_item=8, device=DEVICE.index, timing=False)
    assert result.is_right
    assert [each.kind for each in result.notes] == ["same-value"]


@needs_simulator
def test_a_sum_that_a_group_shares_is_no_right_kernel():
    """Its work-items run one after another on PoCL, and an optimizer would keep the sum in a register."""
    source = (SOLUTIONS / "gather.cl").read_text().replace("float sum = 0;", "local float sum; sum = 0;")
    result = check_kernel(source, "potmap", device=DEVICE.index, timing=False)
    line = source[: source.index("sum = 0;")].count("\n") + 1
    (finding,) = result.findings
    assert (finding.kind, finding.line) == ("race", line)
    assert "share one number in local memory, `sum`" in finding.sentence


ADDITION = """
Read-write data race at local memory address 0x1000000000000
    Kernel: f
    First entity:  Global(1,0,0) Local(1,0,0) Group(0,0,0)
    At line 3 (column {}) of text.cl:
    Second entity: Global(0,0,0) Local(0,0,0) Group(0,0,0)
    At line 3 (column {}) of text.cl:
"""


@pytest.mark.parametrize(
    ("line", "columns", "kind"),
    [
        ("total += sum;", (7, 7), "race"),
        ("total = total + sum;", (7, 9), "race"),
        ("parts[0] += sum;", (10, 10), "race"),
        ("parts[l] += parts[l + n];", (10, 13), "barrier"),
        ("total = parts[l];", (7, 9), "barrier"),
        ("x = sum + total + parts[l];", (11, 19), "barrier"),
    ],
)
def test_a_number_that_all_add_to_misses_no_barrier(line, columns, kind):
    (finding,) = findings_of(ADDITION.format(*columns), f"\n\n{line}\n")
    assert (finding.kind, finding.line) == (kind, 3)
    assert finding.sentence.startswith("all work-items add to one number") == (kind == "race")


@pytest.mark.parametrize(
    ("source", "where"),
    [
        (20 * "\n" + "barrier(CLK_LOCAL_MEM_FENCE);", "on the way from line 23 through the loop to line 20"),
        (19 * "\n" + "part[l] = sum; barrier(CLK_LOCAL_MEM_FENCE);", "on the way from line 23 through the loop"),
        (20 * "\n" + "// barrier(CLK_LOCAL_MEM_FENCE);", "between the two lines"),
        (20 * "\n" + "barrier(CLK_GLOBAL_MEM_FENCE);", "between the two lines"),
        ("barrier(CLK_LOCAL_MEM_FENCE);" + 23 * "\n" + "barrier(CLK_LOCAL_MEM_FENCE);", "between the two lines"),
    ],
    ids=["between", "same-line", "comment", "global", "outside"],
)
def test_where_a_barrier_is_missing_depends_on_what_is_there(source, where):
    (finding,) = findings_of(REPORT, source)
    assert f"a barrier is missing {where}" in finding.sentence


def test_arguments_are_checked():
    with pytest.raises(InputError, match="choose 'sum' or 'potmap'"):
        check_kernel("kernel void f() {}", "energy")
    with pytest.raises(InputError, match="choose 'atom' or 'group'"):
        check_kernel("kernel void f() {}", "born", launch="pair")
    with pytest.raises(InputError, match="group"):
        check_kernel("kernel void f() {}", "born", group=(0,))


def test_the_command_names_what_there_is():
    assert tuple(QUANTITIES) == NAMES
    assert {name for of in QUANTITIES.values() for name in of.launches} == set(LAUNCHES)


def test_the_page_has_every_argument():
    page = (Path(__file__).parent.parent / "docs" / "check.md").read_text()
    for quantity in QUANTITIES.values():
        section = page.partition(f"## `{quantity.name}`")[2].partition("\n## ")[0]
        assert quantity.formula in section
        for given in quantity.given:
            assert f"| `{given.name}` |" in section
            assert given.meaning in section
        assert ", ".join(f"`{name}`" for name in quantity.launches) in section
    beside = ", ".join(f"`{name}`" for name in QUANTITIES if name in LADDERS)
    assert f"{beside} have the rungs".replace(", `nonbond`", " and `nonbond`") in page
    for kind, meaning in KINDS.items():
        assert f"| {kind} | {meaning} |" in page


NO_KERNELS = {"empty": "", "comment": "// no kernel here yet\n", "helper": "float f(float x) { return x; } // kernel\n"}


@pytest.mark.parametrize("source", NO_KERNELS.values(), ids=NO_KERNELS.keys())
def test_a_file_without_a_kernel_is_told_so(source):
    asked = dict(source=source, quantity="sum", launch=None, kernel=None, group=None, points_per_item=None)
    result = in_this_process(asked | {"is_timed": False, "is_simulated": False}, DEVICE)
    assert [each.kind for each in result.findings] == ["compile"]
    assert "the file contains no kernel" in result.findings[0].sentence


SUM = "kernel void s(global const float *values, global float *sums, int n) { sums[get_group_id(0)] = 0; }\n"
SECRET = '"/etc/passwd"'
OUTSIDE = [
    f"#include {SECRET}", '# include "../../x.h"', "#include </etc/passwd>", f"/* */ #include {SECRET}",
    f"%:include {SECRET}", f"#inc\\\nlude {SECRET}", f"#define F {SECRET}\n#include F",
    # what looks like a comment, and is none
    f'constant char a[] = "/*";\n%:include {SECRET}\nconstant char b[] = "*/";',
    f"constant char a[] = \"\\\"/*\";\n#include {SECRET}\n", f"constant char a = '\"';\n#include {SECRET}\n//\"",
    f"#warning don't /*\n#include {SECRET}\n//*/", f"// a\\ \n/*\n*/ #include {SECRET}",
    # other ways to write the same
    f"??=include {SECRET}", f"#inc??/\nlude {SECRET}", f"#inc\\ \t\nlude {SECRET}", f"#/**/include {SECRET}",
    f"#/*\n*/include {SECRET}", f"int a;\r#include {SECRET}\r", f"\f#\vinclude {SECRET}", f"\u00a0#include {SECRET}",
    f"#include_next {SECRET}", f"#import {SECRET}", f"constant char a[] = {{\n#embed {SECRET}\n}};",
    f"#include /* */ {SECRET} // x", f"%:\\\r\ninclude {SECRET}", f"\0#include {SECRET}",
]  # fmt: skip
INSIDE = [
    f"// #include {SECRET}", f"/* \n#include {SECRET}\n*/", f'constant char a[] = "#include {SECRET[1:]};',
    '#include "common/real.clh"', '#include "common/real.clh" // which has real', f"// a comment\\\n#include {SECRET}",
    '#inc\\\nlude "common/real.clh"',
]  # fmt: skip


def test_lines_keep_their_numbers():
    source = 'a /* x\n y */ b\\\nc\\ \nd "e // \\\n" f\n// g\nh??/\ni\nj'
    plain = plain_source(source)
    assert plain == "a     \n      b" + 'cd "e // " f\n\n\n\n    \nhi\n\nj'
    for letter in "abj":
        assert plain.count("\n", 0, plain.index(letter)) == source.count("\n", 0, source.index(letter))


@pytest.mark.parametrize("line", INSIDE)
def test_comments_texts_and_our_headers_are_no_files_outside(line):
    assert not list(files_outside(plain_source(f"{line}\n{SUM}")))


def test_assembly_is_refused():
    """`.incbin` reads a file."""
    (found,) = files_outside(plain_source(f'\n__asm__(".incbin \\"/etc/passwd\\"");\n// asm\n{SUM}'))
    assert (found.line, found.sentence.partition(",")[0]) == (2, "assembly is not allowed")


@pytest.mark.parametrize("line", OUTSIDE)
def test_files_outside_of_the_kernels_folder_are_not_read(line):
    asked = dict(source=f"{line}\n{SUM}", quantity="sum", launch=None, kernel=None, group=None, points_per_item=None)
    result = in_this_process(asked | {"is_timed": False, "is_simulated": False}, DEVICE)
    assert [(each.kind, each.sentence.partition(",")[0]) for each in result.findings] == [
        ("compile", "only headers of cl/ can be included")
    ]


def test_what_a_kernel_prints_is_no_answer():
    """Braces, and the word that ends the answers; more than a pipe holds."""
    prints = 'if (get_global_id(0) == 0) for (int k = 0; k < 20000; ++k) printf("{%d}\\ndone\\n", n);'
    result = check_kernel(SUM.replace("{ ", f"{{ {prints} "), "sum", device=DEVICE.index, timing=False)
    assert result.is_run
    assert result.findings
    assert not {each.kind for each in result.findings} & {"crash", "compile"}


def is_running(process: str) -> bool:
    """True for a process that is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are listed on Linux alone")
def test_an_interrupt_leaves_no_process_behind(tmp_path):
    endless = SUM.replace("{ ", "{ while (n > 0) sums[0] += 1e-30f; ")
    (tmp_path / "endless.cl").write_text(endless)
    words = [sys.executable, "-m", "pele_ocl", "check", tmp_path / "endless.cl", "--as", "sum"]
    program = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    children: list[str] = []
    while not children:
        assert program.poll() is None
        time.sleep(0.05)
        children = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
    program.send_signal(signal.SIGINT)
    assert program.wait(timeout=60) != 0
    for _ in range(1200):  # they end a moment later, when the kernel lets them
        if not any(map(is_running, children)):
            break
        time.sleep(0.05)
    assert not any(map(is_running, children))


def test_a_group_size_is_that_of_the_kernel_however_it_is_written():
    tree = (SOLUTIONS / "sum_tree.cl").read_text().replace("GROUP = 64", "GROUP = 32")
    other = "kernel __attribute__((reqd_work_group_size(1, 1, 1))) void other(global float *sums) { sums[0] = 1; }"
    source = tree.replace("kernel void", "__attribute__((reqd_work_group_size(GROUP, 1, 1)))\nkernel void")
    asked = dict(source=f"{other}\n{source}", quantity="sum", kernel="sum_tree", points_per_item=8)
    asked |= dict(launch=None, group=None, is_timed=False, is_simulated=False)
    assert in_this_process(asked, DEVICE).is_right
    asked["source"] = source.replace("half_size = GROUP / 2", "half_size = GROUP / 4")
    (finding,) = in_this_process(asked, DEVICE).findings
    assert "values are left out" in finding.sentence


def test_all_plain_words_can_be_said():
    for pattern, sentence in PLAIN:
        said = sentence.format(*["x"] * re.compile(pattern).groups)
        assert said
        assert "{{" not in said
    (finding,) = plain_words("error: text.cl:7:2: expected '}'")
    assert (finding.line, finding.sentence) == (7, "a closing brace is missing: some { has no }")


def test_sources_are_read_whatever_their_encoding_and_line_ends(tmp_path):
    path, text = tmp_path / "k.cl", "// \u00fc\nkernel void f() {}\n"
    for data in (
        text.encode(),
        text.encode("utf-8-sig"),
        text.encode("utf-16"),
        text.replace("\n", "\r\n").encode(),
        text.replace("\n", "\r").encode(),
    ):
        path.write_bytes(data)
        assert read_source(path) == text
    path.write_bytes(text.encode("latin-1"))
    assert read_source(path).endswith("\nkernel void f() {}\n")
    path.write_bytes(b"\x7fELF\0\1")
    with pytest.raises(FormatError, match="is not text; give a file of OpenCL C"):
        read_source(path)
