"""Course: its chapters run, its kernels are plain, its solutions pass and its blanks do not, its charts can be read."""

from __future__ import annotations

import csv
import itertools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

import numpy as np
import pytest
from chart_helpers import unreadable
from conftest import DEVICES

from pele_ocl import InputError

COURSE = Path(__file__).parent.parent / "docs" / "course"
CHAPTERS = sorted(COURSE.glob("[0-9]-*.md"))
KERNELS = sorted(COURSE.glob("*/*.cl"))
BLANKS = sorted(path.stem for path in COURSE.glob("blanks/*.cl"))
FENCED = re.compile(r"^```c\n(// .*?)^```$", re.DOTALL | re.MULTILINE)

# Lines of solutions changed as a student might: each must be found.
WRONG = {
    "atoms_outside": [("dz2 = dz * dz", "dz2 = dz"), ("dy * dy + dz2", "dy * dy"), ("+= atom.w", "-= atom.w")],
    "gather": [("i >= nx ||", "i > nx ||"), ("(k * ny + j) * nx + i", "(k * nx + j) * ny + i"), ("|| k >= nz", "")],
    "atomic": [("as_float(expected) + value", "value"), ("seen != expected", "0"), ("-slope * d.z", "slope * d.z"),
               ("if (p >= n_pairs) return;", "")],
    "segments": [
        ("if (i >= n_atoms) return;", ""), ("k = offsets[i]", "k = 0"), ("k < offsets[i + 1]", "k <= offsets[i + 1]"),
        ("index[k]", "k"), ("k < offsets[i + 1]", "k < offsets[i + 2]"),
    ],
    "sum_tree": [("global_size(0)", "global_size(0) - 1"), ("+ half_size", "+ 1"), ("[get_group_id(0)]", "[0]")],
    "born8": [("3.0f / 7", "3.0f / 5"), ("r2 < far * far", "r2 > far * far"), ("fmax(4 * s, rho + s)", "s"),
              ("!any(near)", "0"), (" + x * (5.0f / 11)", "")],
    "gather8": [("1, 2, 3, 4", "1, 2, 4, 3"), (" && i + c < nx", ""), ("x - atoms[a].x", "x - atoms[a].y")],
    "cutoff_bins": [
        ("r2 < cutoff * cutoff)", "true)"), ("own + near[n]", "own + near[0]"),
        ("a < begins[b + 1]", "a <= begins[b + 1]"),
    ],
    "coalesced": [("i + c * width < nx", "true"), ("(c * width)", "c"), ("* width * get", "* get")],
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def modules() -> Iterator[None]:
    """Let modules of the course be imported, as they are from the folder where they lie."""
    sys.path.insert(0, str(COURSE))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PELE_OCL_DEVICE", str(DEVICES[0].index))
        yield
    sys.path.remove(str(COURSE))
    for name in ("course", "exercises", "charts", "drawings", "slides"):
        sys.modules.pop(name, None)


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")  # NVIDIA's remarks on every kernel
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_run(chapter, tmp_path, monkeypatch, capsys):
    """Cells one after the other, in an empty folder; errors that they print are small, charts are readable."""
    pytest.importorskip("matplotlib")
    import charts
    import course

    monkeypatch.chdir(tmp_path)
    drawn = [value for value in course.run_cells(chapter) if isinstance(value, charts.Chart)]
    printed = capsys.readouterr().out
    assert drawn
    errors = [float(found) for found in re.findall(r"error (\S+)", printed)]
    assert all(error < 1e-5 for error in errors)
    for chart in drawn:
        for figure in (chart.light, chart.dark):
            assert not unreadable(figure)
    shown = drawn[0]._repr_html_()
    assert shown.count("data:image/png") == 2
    assert all(f'class="course-{theme}"' in shown for theme in charts.THEMES)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_have_their_parts(chapter):
    import course

    text = chapter.read_text()
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert "Question" in headings
    assert "On an NVIDIA GPU" in headings
    assert [
        name
        for name in BLANKS
        if f"course.py check {name}\n" in text
        and f"blanks/{name}.cl docs/course/mine/`" in text
        and f"solutions/{name}.cl" in text
    ]
    files = {path.read_text() for path in KERNELS}
    assert FENCED.findall(text)
    assert all(kernel in files for kernel in FENCED.findall(text)), "a kernel of the page is not that of its file"
    lines = [line for cell in course.cells(chapter) for line in cell.splitlines()]
    assert max(map(len, lines)) <= 103  # as many as the page has room for


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_kernels_are_plain(path):
    """At most 30 lines, no macro, no include, and a sentence first."""
    text = path.read_text()
    assert len(text.splitlines()) <= 30
    assert "#" not in text
    assert text.startswith("// ")
    assert max(map(len, text.splitlines())) <= 103  # as many as the page has room for


def found_in(name: str, source: str, capsys) -> str:
    """Check a kernel of an exercise as its command does, without its process: what is wrong, or ""."""
    import exercises

    from pele_ocl.checking.check import in_this_process

    if name not in exercises.QUANTITIES:
        right, printed = exercises.check(name, source, is_simulated=False), capsys.readouterr().out
        return "" if right else printed
    words = exercises.QUANTITIES[name]
    asked = {word.strip("-").replace("-", "_"): given for word, given in zip(words[::2], words[1::2], strict=True)}
    request = dict.fromkeys(("kernel", "launch", "group", "points_per_item"))
    request |= dict(source=source, quantity=asked.pop("as"), is_timed=False, is_simulated=False, **asked)
    request["points_per_item"] = request["points_per_item"] and int(request["points_per_item"])
    return "\n".join(map(str, in_this_process(request, DEVICES[0]).findings))


@pytest.mark.parametrize("name", BLANKS)
def test_solutions_pass_and_blanks_fail(name, capsys):
    solution, blank = ((COURSE / folder / f"{name}.cl").read_text() for folder in ("solutions", "blanks"))
    assert re.fullmatch("(.+?)".join(map(re.escape, blank.split("____"))), solution)
    assert not found_in(name, solution, capsys)
    lines = [number for number, line in enumerate(blank.splitlines(), 1) if "____" in line]
    left = found_in(name, blank, capsys)
    told = re.findall(r"lines? ([\d, and]+): the blank `____` has not been filled", left)
    assert [int(number) for each in told for number in re.findall(r"\d+", each)] == lines
    for right, wrong in WRONG[name]:
        assert right in solution
        assert found_in(name, solution.replace(right, wrong), capsys), wrong
    unknown = found_in(name, solution.replace("const", "nonsense", 1), capsys)
    assert "the compiler says" in unknown or "`nonsense` is" in unknown


NUMBER = "(bin.z * bins.y + bin.y) * bins.x + bin.x"
ADDED = "as_int(as_float(expected) + value)"


@pytest.mark.parametrize(
    ("name", "right", "wrong", "said"),
    [
        ("atomic", "seen != expected", "seen == expected", "additions are lost"),
        ("atomic", ADDED, "as_int(value)", "additions are lost"),
        ("atomic", ADDED, "expected + value", "as_int(as_float(...) + ...) keeps its bits"),
        ("atomic", ADDED, "as_int(expected + value)", "as_float(expected) is its value"),
        ("segments", "stored[index[k]]", "stored[k]", "that one is number index[k]"),
        ("segments", "k < offsets[i + 1]", "k < offsets[i]", "still 1, as the check filled the array before"),
        ("segments", "k < offsets[i + 1]", "k <= offsets[i + 1]", "the gradient of atom 0, x is"),
        ("segments", "k < offsets[i + 1]", "k < offsets[i + 2]", "not two of them"),
        ("born8", "1.0f / 3", "1 / 3", "line 4: 1 / 3 is 0, because C divides integers; write 1.0f / 3"),
        ("born8", "1.0f / 3", "1.0 / 3", "line 4: a double is combined with a float vector"),
        ("born8", "!any(near)", "!near", "line 12: a mask has a truth value in each lane"),
        (
            "born8",
            "!any(near)",
            "any(near)",
            "every near pair has the value of the series, infinite for an atom with itself at r2 = 0",
        ),
        ("born8", "fmax(4 * s, rho + s)", "4 * s", "a pair is far if it is beyond both, fmax(4 * s, rho + s)"),
        ("born8", "!any(near)", "0", "must be true if no lane is near"),
        ("born8", "far * far", "far", "is it compared with far * far?"),
        ("born8", " + x * (5.0f / 11)", "", "the series ends one term too early"),
        (
            "coalesced",
            "POINTS * width * get_group_id(0) + get_local_id(0)",
            "get_global_id(0)",
            "groups overlap, because",
        ),
        ("segments", "gradient[i] +=", "gradient[n_atoms - 1 - i] +=", "correct, but in the wrong places"),
        ("segments", "gradient[i] +=", "gradient[i] =", "is used instead of +="),
        ("segments", "sign * sum", "sum", "the sign of the sum is wrong"),
        ("atomic", "add(gradient + 3 * j, -slope", "add(gradient + 3 * j, slope", "must be minus that"),
        ("atomic", "rsqrt(r2) / r2", "rsqrt(r2)", "the slope lacks a factor 1 / r2"),
        ("atomic", "3 * j + 1,", "3 * j + 2,", "a number is in the wrong place"),
        ("cutoff_bins", "if (r2 < cutoff * cutoff)", "if (true)", "atoms beyond the cutoff are included"),
        ("cutoff_bins", "if (r2 < cutoff * cutoff)", "if (r2 < cutoff)", "compare it with cutoff * cutoff"),
        ("cutoff_bins", "begins[b + 1];", "begins[b + 1] - 1;", "one atom too few at its end"),
        ("cutoff_bins", "a = begins[b];", "a = begins[b] + 1;", "one atom too few at its start"),
        ("cutoff_bins", "a < begins[b + 1]", "a < begins[b]", "nothing was added"),
        ("cutoff_bins", ">= bins.xyz)", ">= bins.xyz - 1)", "last layer of bins is left out"),
        ("cutoff_bins", "any(bin.xyz < 0)", "any(bin.xyz < 1)", "first layer of bins is left out"),
        (
            "cutoff_bins",
            "(k * ny + j) * nx + i",
            "(i * ny + j) * nx + k",
            "x and z are swapped instead of `map`",
        ),
        ("cutoff_bins", "= sum;", "= 332.06f * sum;", "all are 332.1 times what they should be"),
        ("cutoff_bins", "= sum;", "= 0.1f * sum;", "all are 0.1 times what they should be"),
        ("cutoff_bins", NUMBER, "(own.z * bins.y + own.y) * bins.x + own.x", "b is the number of `bin`"),
        ("cutoff_bins", NUMBER, "(bin.x * bins.y + bin.y) * bins.z + bin.z", "x and z are swapped"),
        ("cutoff_bins", NUMBER, "(bin.z * bins.x + bin.x) * bins.y + bin.y", "x and y are swapped"),
    ],
)
def test_slips_are_told_by_their_cause(name, right, wrong, said, capsys):
    solution = (COURSE / "solutions" / f"{name}.cl").read_text()
    assert right in solution
    assert said in found_in(name, solution.replace(right, wrong), capsys)


WRITTEN = {
    "__kernel": ("segments", "kernel void", "__kernel void"),
    "lines": ("segments", "kernel void segments(", "kernel\n  void\nsegments ("),
    "attribute": ("segments", "kernel void", "kernel __attribute__((reqd_work_group_size(8, 1, 1))) void"),
    "blank in a comment": ("segments", "// A", "// filled the blanks ____\n// A"),
    "first try": ("segments", "kernel void", "kernel void first_try(global int *a) { a[0] = 1; }\nkernel void"),
    "spaces": ("born8", "float8 born8(", "float8\nborn8 ("),
    "static": ("born8", "float8 series8(", "static inline float8 series8("),
    "helper": ("born8", "float8 born8(", "float8 near8(float8 a, float8 b, float8 c) { return hct8 (a, b, c); }\n"
               "float8 born8("),
    "two kernels": ("gather", "kernel void", "kernel void first_try(global int *a) { a[0] = 1; }\nkernel void"),
}  # fmt: skip


@pytest.mark.parametrize("way", WRITTEN)
def test_right_solutions_pass_however_they_are_written(way, capsys):
    import course
    import exercises

    name, old, new = WRITTEN[way]
    source = (COURSE / "solutions" / f"{name}.cl").read_text()
    source = source.replace(old, new, 1)
    if way == "helper":
        source = source.replace("near ? hct8(", "near ? near8(")
    assert source.count(new) == 1
    assert not [*exercises.blanks(source), *exercises.another(name, source)]
    if way == "two kernels":
        assert course._options(name, source)[-2:] == ["--kernel", "gather"]
    else:
        assert exercises.check(name, source, is_simulated=False), capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "own"),
    [
        ("    const float sign,", "", "int, an array, an array, an array, an array"),
        ("const int n_atoms, global", "global", "an array, an array, an array, float, an array"),
    ],
)
def test_other_arguments_are_told_as_such(old, new, own):
    """They are given by their place: a kernel with others would crash, or compute nonsense."""
    import exercises

    source = re.sub("//.*", "", (COURSE / "solutions" / "segments.cl").read_text())
    (said,) = exercises.another("segments", source.replace(old, new))
    given = "int, an array, an array, an array, float, an array"
    assert said == f"its arguments are {own}; the check gives {given}, in this order"


def test_sentences_of_several_lines_are_said_once():
    from exercises import with_lines

    found = [(7, "here"), (None, "everywhere"), (9, "there"), (5, "here"), (12, "here"), (5, "here")]
    assert with_lines(found) == ["lines 5, 7 and 12: here", "everywhere", "line 9: there"]


def test_what_cannot_be_checked_is_no_fault_of_a_kernel(tmp_path, monkeypatch):
    import course

    failed = subprocess.CompletedProcess([], 1, "", "Error: the disk is full")
    monkeypatch.setattr(course.subprocess, "run", lambda *_, **__: failed)
    verdict = course._verdict("gather", COURSE / "solutions" / "gather.cl")
    assert verdict.findings == ["it could not be checked: Error: the disk is full"]
    assert not verdict.is_checked
    binary = tmp_path / "gather.cl"
    binary.write_bytes(b"PK\0\1")
    assert course._verdict("gather", binary).findings == [f"{binary}: is not text; give a file of OpenCL C"]


def test_a_simulator_that_does_not_end_is_no_fault_of_a_kernel(monkeypatch, capsys):
    """It takes a thousand times as long as the device, on a busy machine more; what it saw so far counts."""
    import course
    import exercises

    def late(command, **_):
        if said:
            Path(log[0]).write_text(said)
        raise subprocess.TimeoutExpired(command, 1)

    log = []
    monkeypatch.setattr(course, "simulated", lambda command, path: log.insert(0, path) or (command, {}))
    monkeypatch.setattr(course.subprocess, "run", late)
    monkeypatch.setattr(exercises, "simulator", lambda: "oclgrind")
    said = ""
    assert exercises.seen("segments", "", print) == []
    assert "oclgrind did not end" in capsys.readouterr().out
    said = "Invalid read of size 4 at global memory address 0x1000000000100\n    At line 14 (column 44) of text.cl:\n"
    (found,) = exercises.seen("segments", "", print)
    assert found.startswith("line 14: it reads outside an array")


def test_a_file_of_another_exercise_is_told_as_such(capfd):
    import course

    gather = COURSE / "solutions" / "gather.cl"
    for name, wanted in (("atomic", "kernel `atomic_pairs`"), ("coalesced", "kernel `coalesced`")):
        assert course.main(["check", name, str(gather)]) == 1
        assert f"{name}: the file has no {wanted}; it has `gather`" in capfd.readouterr().out


def test_a_file_that_is_missing_is_told_with_the_command_that_makes_it(tmp_path, capsys, monkeypatch):
    import course

    monkeypatch.setattr(course, "HERE", tmp_path)
    assert course.main(["check", "gather"]) == 2
    assert f"cp {tmp_path}/blanks/gather.cl {tmp_path}/mine" in capsys.readouterr().out


def test_a_misspelt_kernel_is_told_with_the_near_name():
    import course

    with pytest.raises(InputError, match="no kernel 'gahter'; is 'gather' meant"):
        course.kernel("gahter")


def test_all_solutions_are_right_for_a_grader(tmp_path):
    """Each in a process of its own, with the simulator if there is one, as JSON and as a row of the table."""
    import course

    for exercise in ("cutoff_bins", "segments"):  # the others: test_hand_ins_are_graded_in_a_table
        verdict = course._verdict(exercise, COURSE / "solutions" / f"{exercise}.cl")
        assert (verdict.is_right, verdict.findings) == (True, [])


def test_the_simulator_sees_what_a_step_reads_outside(capsys):
    import exercises

    if exercises.simulator() is None:
        pytest.skip("oclgrind is not installed")
    solution = (COURSE / "solutions" / "segments.cl").read_text()
    assert not exercises.check("segments", solution.replace("k = offsets[i]", "k = offsets[i - 1]"))
    assert "segments: line 12: it reads outside an array in global memory" in capsys.readouterr().out


def test_the_host_program_in_c_runs_a_kernel(tmp_path):
    """Built where OpenCL's headers are, with PoCL's wheel as its runtime; a blank that is left is told by line."""
    import pyopencl

    compiler, libraries = shutil.which("cc"), Path(pyopencl.__file__).parent / ".libs"
    if compiler is None or not Path("/usr/include/CL/cl.h").exists() or not (libraries / "pocl.icd").exists():
        pytest.skip("no C compiler, no headers of OpenCL, or no PoCL of a wheel")
    name = "libOpenCL.so"
    if subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip() == name:
        pytest.skip("the compiler finds no library of OpenCL")
    program = tmp_path / "host"
    subprocess.run([compiler, "-Wall", "-Werror", COURSE / "host.c", "-lOpenCL", "-lm", "-o", program], check=True)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LD_LIBRARY_PATH": str(libraries)}
    environment["OCL_ICD_VENDORS"] = str(libraries / "pocl.icd")
    for folder, code in (("solutions", 0), ("blanks", 1)):
        command = [program, COURSE / folder / "gather.cl"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
    assert "____" in done.stderr


def test_drawings_are_those_of_their_script():
    import drawings

    for name, draw in drawings.DRAWINGS.items():
        assert (drawings.FIGURES / name).read_text() == draw(), f"{name} is stale: run docs/course/drawings.py"


@pytest.mark.parametrize("page", sorted(COURSE.glob("*.md")), ids=lambda page: page.stem)
def test_files_that_pages_name_are_there(page):
    root, text = COURSE.parent.parent, page.read_text()
    named = re.findall(r"`((?:cl|data|docs|tests|pele_ocl)/[\w./*-]+)`", text)
    named += [f"docs/course/{name}" for name in re.findall(r"`((?:kernels|blanks|solutions)/[\w.]+)`", text)]
    own = "docs/course/mine/"  # files that students make
    assert not [name for name in named if not name.startswith(own) and not list(root.glob(name))]


def test_every_exercise_has_its_files():
    from exercises import EXERCISES

    assert sorted(EXERCISES) == BLANKS == sorted(path.stem for path in COURSE.glob("solutions/*.cl"))


def test_command(tmp_path, capfd, monkeypatch):
    import course

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(COURSE.parent.parent))
    crashing = (COURSE / "solutions" / "segments.cl").read_text().replace("index[k]", "index[k] + 2000000000")
    (tmp_path / "mine.cl").write_text(crashing)
    assert course.main(["check", "segments", "mine.cl"]) == 1
    said, complaints = capfd.readouterr()
    assert said.startswith(f"on {DEVICES[0]}\n")
    assert "which index is outside its array?" in said
    assert not complaints
    assert course.main(["check", "segments", str(COURSE / "solutions" / "segments.cl")]) == 0
    said = capfd.readouterr().out
    assert "pairs: right" in said
    assert "yours takes" in said
    endless = tmp_path / "endless.cl"
    solution = (COURSE / "solutions" / "atomic.cl").read_text()
    adds_bits = solution.replace("as_int(as_float(expected) + value)", "expected + value")
    endless.write_text(adds_bits.replace("!= expected", "== expected"))
    with monkeypatch.context() as patch:
        patch.setattr(course, "MOST_SECONDS", 2)  # soon enough that a core does not turn long
        assert course.main(["check", "atomic", str(endless)]) == 1
    assert "; a correct kernel takes milliseconds: an infinite loop" in capfd.readouterr().out
    (tmp_path / "bin").mkdir()
    if linker := shutil.which("ld"):  # by which PoCL ends its compilation
        (tmp_path / "bin" / "ld").symlink_to(linker)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))  # without a simulator
    assert course.main(["check", "sum_tree", str(COURSE / "solutions" / "sum_tree.cl")]) == 0
    said = capfd.readouterr().out
    assert re.match(r"on .+\npele-ocl check \S+ --as sum --points-per-item 8\n", said)
    assert "10 of 10 sizes correct" in said
    assert course.main(["check", "gather", str(COURSE / "blanks" / "gather.cl")]) == 1
    assert course.main(["check", "gather", "nowhere.cl"]) == 2
    assert "there is no file nowhere.cl" in capfd.readouterr().out
    assert course.main(["check-here", "segments", str(COURSE / "blanks" / "segments.cl")]) == 1
    with pytest.raises(SystemExit, match="2"):
        course.main(["run", "99"])
    assert course.main([]) == 0
    assert "exercises: atoms_outside" in capfd.readouterr().out
    with pytest.raises(SystemExit, match="0"):
        course.main(["--help"])
    assert "check-here" not in capfd.readouterr().out


def test_hand_ins_are_graded_in_a_table(tmp_path, capfd, monkeypatch):
    """A row for each file of a student: planted faults are named, right ones have times, and nothing else is found."""
    import course

    monkeypatch.setenv("PYTHONPATH", str(COURSE.parent.parent))
    solution = (COURSE / "solutions" / "segments.cl").read_text()
    hand_ins = {
        "ada/gather": (COURSE / "solutions" / "gather.cl").read_text(),
        "ada/segments": solution.replace("float4 sum", 'if (i == 0) printf("seen ");\n    float4 sum', 1),
        "bob/segments": solution.replace("k < offsets[i + 1]", "k < offsets[i]"),
        "bob/gather": (COURSE / "blanks" / "gather.cl").read_text(),
    }
    for name, text in hand_ins.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.cl").write_bytes(f"// f\u00fcr {name}\r\n{text}".encode("latin-1"))
    (tmp_path / "bob" / "notes.cl").write_text("no exercise")
    (tmp_path / "bob" / "atomic.cl").write_text("an exercise that was not set")
    (tmp_path / "eve").mkdir()
    asked = ["grade", str(tmp_path), "-o", str(tmp_path / "grades.csv"), "--exercises", "gather,segments"]
    assert course.main(asked) == 0
    with (tmp_path / "grades.csv").open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert [(row["student"], row["exercise"], row["right"]) for row in rows] == [
        ("ada", "gather", "yes"), ("ada", "segments", "yes"), ("bob", "gather", "no"), ("bob", "segments", "no"),
    ]  # fmt: skip
    assert all(float(row[column]) > 0 for row in rows[:2] for column in ("ms", "ms of the solution"))
    lines = capfd.readouterr().out.splitlines()
    assert lines[-2:] == ["", "correct answers of all 3 students: gather 1, segments 1"]
    assert [line.split("; ") for line in lines[-5:-2]] == [
        [f"{'ada':20} 2 of 2 right"],
        [f"{'bob':20} 0 of 2 right", "wrong: gather, segments"],
        [f"{'eve':20} 0 of 2 right", "not handed in: gather, segments"],
    ]
    assert "has not been filled" in rows[2]["findings"]
    assert "still 1, as the check filled the array before" in rows[3]["findings"]
    assert course.main(["grade", str(tmp_path / "ada")]) == 2
    with pytest.raises(SystemExit, match="2"):
        course.main(["grade", str(tmp_path), "--exercises", "gahter"])
    capfd.readouterr()
    assert course.main(["check", "segments", str(COURSE / "solutions" / "segments.cl"), "--json"]) == 0
    verdict = json.loads(capfd.readouterr().out)
    assert verdict["is_right"]
    assert verdict["seconds"] > 0


def test_students_get_the_course_without_solutions_and_answers(tmp_path):
    import course

    folder = tmp_path / "students"
    assert course.main(["hand-out", str(folder)]) == 0
    assert not (folder / "solutions").exists()
    assert not (folder / "answers.md").exists()
    assert sorted(path.stem for path in folder.glob("blanks/*.cl")) == BLANKS
    assert not list(folder.glob("mine/*.cl"))
    assert course.main(["hand-out", str(folder)]) == 2
    check = [sys.executable, str(folder / "course.py"), "check", "gather", str(COURSE / "blanks" / "gather.cl")]
    assert subprocess.run(check, capture_output=True).returncode == 1


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_slides_show_every_kernel_and_no_answer(chapter):
    """All code of the chapter, each block on one slide; questions whole; answers for whoever asks for them."""
    pytest.importorskip("markdown_it")
    import slides

    made = slides.slides_of(chapter)
    pages = [slide.html(number, len(made)) for number, slide in enumerate(made, 1)]
    assert len(pages) >= 8
    for block in re.findall(r"^```(?:c|\{code-cell\})\n(.*?)^```$", chapter.read_text(), re.DOTALL | re.MULTILINE):
        assert sum(escape(block) in page for page in pages) == 1
    assert all("](" not in page for page in pages)
    question = next(index for index, slide in enumerate(made) if "Question" in slide.heading)
    assert "<h2>Answer" not in "".join(pages)
    answer = slides.answers()[chapter.stem[0]]
    taught = slides.slides_of(chapter, answer)
    assert "Answer" in taught[question + 1].heading
    assert len(taught) == len(made) + 1


def test_a_race_that_the_device_hides_is_found(capsys):
    """The lost additions are of other work-items' groups, which PoCL never runs at a time in so few pairs."""
    import course
    import exercises

    if course.simulator() is None:
        pytest.skip("oclgrind is not installed")
    assert "races, the first:" in course.races("naive")
    naive = course.kernel("naive").replace("void naive(", "void atomic_pairs(")
    assert not exercises.check("atomic", naive)
    assert "a race: let one work-item own each element, or add atomically" in capsys.readouterr().out


def test_cells_take_another_molecule_and_size():
    import course

    cell = 'course.map_of("ubiquitin", points=16), course.pairs_of("ubiquitin", cutoff=8.0), course.kernel("atomic")'
    assert course.resized(cell, None, None) == cell
    assert course.resized(cell, "src3", 64) == (
        'course.map_of("src3", points=64), course.pairs_of("src3", cutoff=8.0), course.kernel("atomic")'
    )


def test_charts_go_to_a_folder_that_git_ignores(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    import course

    chapter = tmp_path / "9-short.md"
    chapter.write_text('```{code-cell}\nimport course\ncourse.bars("Bars", {"one": 1.0, "two": 2.5}, "ms")\n```\n')
    monkeypatch.setattr(course, "CHAPTERS", [chapter])
    monkeypatch.chdir(tmp_path)
    assert course.main(["run", "1", "--charts", "drawn"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("on ")
    assert "two        2.5  ms\nchart: drawn/9-short-1-light.png" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["9-short.md", "drawn"]
    default = Path(course.HERE, "drawn").relative_to(COURSE.parent.parent)
    assert f"{default}/" in (COURSE.parent.parent / ".gitignore").read_text().splitlines()


def test_overlapping_texts_are_found():
    pytest.importorskip("matplotlib")
    import charts

    chart = charts.bars("Bars", {"one": 1.0, "two": 2.0}, "a unit")
    assert not unreadable(chart.light)
    axes = chart.light.axes[0]
    axes.text(0.5, 0.5, "here")
    axes.text(0.5, 0.5, "there")
    axes.text(2.0, 1.0, "a long text that leaves the figure on its right side")
    assert len(unreadable(chart.light)) >= 2


@pytest.mark.parametrize("high", [1.0, pytest.param(0.5, marks=pytest.mark.slow), 0.001])
def test_names_of_dots_never_overlap(high):
    """Wherever a machine's own speeds put the dots: all near the roof, at the foot, one on another."""
    pytest.importorskip("matplotlib")
    import charts

    x = [2.0**k for k in range(-3, 9)]
    roof = [min(1000.0, 50 * each) for each in x]
    numbers = np.random.default_rng(5)
    for case in range(2):
        at = 2.0 ** numbers.uniform(-3, 8, 6) if case else np.full(6, 30.0)
        dots = {f"{k} coarsened": (float(x), 1000.0 * high * (1 - 0.02 * case * k)) for k, x in enumerate(at)}
        for log_y in (True, False):
            ends = {"roof": (x, roof), "as high": (x, roof)}
            chart = charts.curves("Roof", "operations per byte", "GFLOP/s", ends, log_y=log_y, points=dots)
            assert not unreadable(chart.light), (case, log_y)


@pytest.mark.parametrize("ratio", [1.0001, 3.7, 40, 1e4])
def test_numbers_of_logarithmic_axes_never_overlap(ratio):
    pytest.importorskip("matplotlib")
    import charts

    for low in (3e-7, 2.1):
        high = low * ratio
        drawn = charts.bars("Bars", {"low": low, "high": high}, "Mpairs/s", log=True)
        assert not unreadable(drawn.light), low
        drawn = charts.curves("Curves", "items", "Mpairs/s", {"one": ([1, 2, 4], [low, high, low])})
        assert not unreadable(drawn.dark), low
        low_y, high_y = drawn.dark.axes[0].get_ylim()
        assert sum(low_y <= tick <= high_y for tick in drawn.dark.axes[0].get_yticks()) >= 1


def luminance(colour: str) -> float:
    values = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


# Linear RGB as people without red cones, or without green ones, see it (Machado, Oliveira and Fernandes 2009).
BLIND = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", BLIND)
def test_colours_are_told_apart(theme, kind):
    """Colours stand out from the page, and from each other for people who confuse red and green."""
    import charts

    background, text, _, colours = charts.THEMES[theme]
    assert contrast(background, text) > 7
    assert all(contrast(background, colour) > 4.5 for colour in colours)
    seen = [np.clip(np.array(BLIND[kind]) @ [int(c[k : k + 2], 16) / 255 for k in (1, 3, 5)], 0, 1) for c in colours]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 0.15


def test_the_spread_of_runs_goes_through_arithmetic_to_the_chart():
    from charts import Measured, bars, errors

    fastest = Measured(2.0, 5.0)
    for value, wanted in ((1e3 * fastest, (2000, 5000)), (10 / fastest, (5, 2)), (fastest + fastest / 2, (3, 7.5))):
        assert (float(value), value.slowest) == wanted
    assert errors([fastest, 10 / fastest, 4.0]) == [[0, 3, 0], [3, 0, 0]]
    pytest.importorskip("matplotlib")
    chart = bars("title", {"both": fastest, "one": 4.0}, "ms")
    assert chart.table.splitlines() == ["both          2  ms; slowest run 5", "one           4  ms"]
    assert not unreadable(chart.light)
