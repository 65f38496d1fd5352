"""Jobs from Python: records, journals that are gone on with, workers and shards."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from conftest import DEVICES

import pele_ocl
from pele_ocl import FormatError, InputError, jobs
from pele_ocl.common.inputfile import InputFile
from pele_ocl.common.installation import shipped
from pele_ocl.jobs import Journal, workers
from pele_ocl.jobs.running import _Records

ROOT = Path(__file__).parent.parent
HEXAPEPTIDE = shipped("data") / "structures" / "hexapeptide.pdb"


@dataclass(frozen=True, eq=False)
class Count(jobs.StructureSpec):
    """Number of atoms of a file; seen : what was computed, in this process"""

    word: str = "ATOM"
    seen: list[str] = field(default_factory=list)

    @cached_property
    def _costly(self) -> object:
        return lambda: None  # which does not pickle

    def settings(self) -> dict[str, str]:
        return {"word": self.word}

    def compute(self, item: InputFile) -> Mapping[str, Any]:
        assert self._costly
        self.seen.append(item.path.name)
        n = sum(line.startswith(self.word) for line in item.data.decode().splitlines())
        if not n:
            raise InputError(f"{item}: has no {self.word}\nat all")
        return {"n": n}


@pytest.fixture(autouse=True)
def device(monkeypatch):
    monkeypatch.setenv("PELE_OCL_DEVICE", str(DEVICES[0].index))


@pytest.fixture
def files(tmp_path):
    for name in "abc":
        shutil.copy(HEXAPEPTIDE, tmp_path / f"{name}.pdb")
    (tmp_path / "bad.pdb").write_text("nothing\n")
    return [tmp_path / f"{name}.pdb" for name in ("a", "bad", "b", "none", "c")]


def timeless(records):
    lines = [record.to_dict() for record in records]
    return [{**line, "seconds": None} for line in lines]


def test_records_of_good_and_bad_items(files):
    records = list(jobs.run(Count(), files))
    assert [record.structure for record in records] == list(map(str, files))
    assert [record.failed for record in records] == [False, True, False, True, False]
    assert records[0]["n"] == 96
    assert records[1].error == f"{files[1]}: has no ATOM\\nat all"  # on one line
    with pytest.raises(InputError, match="has no ATOM"):
        records[1]["n"]
    assert (records[3].sha256, records[3].reason) == ("", "no such file")
    for record in records:
        assert jobs.Record.from_dict(json.loads(json.dumps(record.to_dict()))) == record
        assert record.to_dict()["schema"] == 2


def test_a_journal_is_gone_on_with(files, tmp_path):
    """Records that are there are taken; failed and changed ones are computed again."""
    path = tmp_path / "counts.jsonl"
    whole = timeless(jobs.run(Count(), files, journal=path))
    text = path.read_text()
    path.write_text(text[: text.rindex('{"schema"') + 30])  # as a kill leaves it
    spec = Count()
    assert timeless(jobs.run(spec, files, journal=path)) == whole
    assert spec.seen == ["bad.pdb", "c.pdb"]
    files[0].write_text("ATOM\n")
    (found, *rest) = jobs.run(Count(), files, journal=path)
    assert found["n"] == 1
    assert timeless(rest) == whole[1:]
    with pytest.raises(FormatError, match=r"was written with other settings \(word\); resume with the same"):
        list(jobs.run(Count("HETATM"), files, journal=path))
    assert "ATOM" in path.read_text()  # of the run before, which stays
    spec = Count()
    list(jobs.run(spec, files, journal=path, resume=False))
    assert len(spec.seen) == 4


def test_a_killed_job_goes_on(files, tmp_path):
    """kill -9 after the second record: the journal has both, and the rest is computed."""
    path = tmp_path / "counts.jsonl"
    script = f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_jobs import Count, jobs
        for k, record in enumerate(jobs.run(Count(), {list(map(str, files))!r}, journal={str(path)!r})):
            if k == 2:
                os.kill(os.getpid(), signal.SIGKILL)
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(jobs.read_journal(path).records) == 3
    spec = Count()
    records = list(jobs.run(spec, files, journal=path))
    assert spec.seen == ["bad.pdb", "c.pdb"]
    assert timeless(records) == timeless(jobs.run(Count(), files))


def test_a_full_disk_leaves_whole_lines(files, tmp_path, monkeypatch):
    path = tmp_path / "counts.jsonl"
    journal, written = Journal(path, {}), []
    with journal:
        journal.begin()
        stream = journal._stream

        class Full:
            """Stream of a disk that is full after half of the second line."""

            def write(self, data):
                written.append(len(data))
                if len(written) == 2:
                    return stream.write(data[:10])
                if len(written) == 3:
                    raise OSError(28, "No space left on device")
                return stream.write(data)

            def __getattr__(self, name):
                return getattr(stream, name)

        journal._stream = Full()
        journal.add(jobs.Record("a", "", {"n": 1}))
        with pytest.raises(FormatError, match="No space left"):
            journal.add(jobs.Record("b", "", {"n": 2}))
    assert path.read_bytes().endswith(b"\n")
    assert list(jobs.read_journal(path).records) == ["a"]


@dataclass(frozen=True, eq=False)
class Grouped(Count):
    """The same in groups of four; dies : before this file, if a file `alive` does not say that it did already"""

    dies: str = ""
    log: str = ""

    def groups(self, items):
        return (items[first : first + 4] for first in range(0, len(items), 4))

    def compute(self, item: InputFile) -> Mapping[str, Any]:
        if item.path.stem == self.dies and not item.path.with_name("alive").exists():
            item.path.with_name("alive").touch()
            os._exit(1)
        with open(self.log, "a") as log:
            log.write(item.path.stem)
        return super().compute(item)


def dead_group(spec: Grouped, files: list[Path], journal: Path) -> None:
    """Leave what a worker leaves that dies in the middle of a group, with the command that began it."""
    child = os.fork()
    if not child:
        _Records(spec, Journal(journal, spec.settings(), kind="Grouped").notes).compute(files)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_a_group_whose_worker_died_goes_on_item_by_item(files, tmp_path):
    """Another worker, or the same command with resume, computes what is left alone."""
    paths = [files[0], files[2], files[4], files[1]]
    log, journal = tmp_path / "log", tmp_path / "counts.jsonl"
    spec = Grouped(dies="c", log=str(log))
    dead_group(spec, paths, journal)
    assert log.read_text() == "ab"
    work = _Records(spec, Journal(journal, spec.settings(), kind="Grouped").notes)
    assert timeless(work.compute(paths)) == timeless(jobs.run(Count(), paths))
    assert log.read_text() == "abcbad"
    shutil.rmtree(tmp_path / "counts.jsonl.groups")
    (tmp_path / "alive").unlink()
    dead_group(spec, paths, journal)
    paths[1].write_text("ATOM\n")  # which has changed since
    records = list(jobs.run(spec, paths, journal=journal))
    assert log.read_text() == "abcbad" + "ab" + "bcbad"
    assert [record.failed for record in records] == [False, False, False, True]
    assert records[1]["n"] == 1
    assert list(jobs.read_journal(journal).records) == [str(paths[k]) for k in (0, 1, 2, 3)]


def test_notes_of_another_job_do_not_count(files, tmp_path):
    log, journal = tmp_path / "log", tmp_path / "counts.jsonl"
    dead_group(Grouped(dies="c", log=str(log)), files[::2], journal)
    list(jobs.run(Grouped("HETATM", log=str(log)), files[::2], journal=journal))
    assert log.read_text() == "ab" + "abc"


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_workers_that_die_in_a_group_lose_one_item(workers, files, tmp_path):
    pytest.importorskip("distributed")
    log, paths = tmp_path / "log", [files[0], files[2], files[4]]
    spec = Grouped(dies="c", log=str(log))
    records = list(jobs.run(spec, paths, journal=tmp_path / "counts.jsonl", workers=workers))
    assert [record["n"] for record in records] == [96] * 3
    assert log.read_text() == "abc"
    assert not (tmp_path / "counts.jsonl.groups").exists()


def test_records_come_in_the_order_of_items_whenever_they_are_done(files, tmp_path):
    @dataclass(frozen=True, eq=False)
    class Backwards(Count):
        def records(self, items, begin):
            return map(self.record, list(items)[::-1])

    given = [files[0], files[2], files[4], files[0]]
    records = list(jobs.run(Backwards(), given, journal=tmp_path / "counts.jsonl"))
    assert [record.structure for record in records] == list(map(str, given))
    assert [record.path.stem for record in jobs.read_journal(tmp_path / "counts.jsonl").records.values()] == [
        "c",
        "b",
        "a",
    ]


def test_shards_merge(files, tmp_path):
    path = tmp_path / "counts.jsonl"
    for k in (1, 2):
        list(jobs.run(Count(), files, journal=path, shard=f"{k}/2"))
    shards = [tmp_path / f"counts.{k}of2.jsonl" for k in (2, 1)]
    whole = jobs.merged(shards)
    assert timeless(whole.records.values()) == timeless(jobs.run(Count(), files))
    for k in (1, 2):
        list(jobs.run(Count(), [files[0]] * 2, journal=tmp_path / "twice.jsonl", shard=f"{k}/2"))
    assert len(jobs.merged(tmp_path / f"twice.{k}of2.jsonl" for k in (1, 2)).in_order()) == 2
    with pytest.raises(FormatError, match="1 shards are missing, the first is 1"):
        jobs.merged(shards[:1])
    shards[0].write_bytes(shards[0].read_bytes()[:-5])
    with pytest.raises(FormatError, match="1 of 3 structures are missing"):
        jobs.merged(shards)
    with pytest.raises(FormatError, match="is not a journal of records"):
        jobs.merged([files[0]])


def test_workers_give_the_same_records(files, tmp_path):
    """A class that the workers cannot import goes to them by value, and what is cached stays here."""
    script = f"""
        import json
        from dataclasses import dataclass
        import pele_ocl
        from pele_ocl import jobs

        @dataclass(frozen=True, eq=False)
        class Mine(jobs.StructureSpec):
            factor: int = 2
            def compute(self, item):
                return {{"n": self.factor * len(item.data)}}

        if __name__ == "__main__":
            files = {list(map(str, files))!r}
            for record in jobs.run(Mine(), files, workers=2):
                print(json.dumps(record.to_dict()))
            energies = pele_ocl.EnergySpec(precision="float64")
            for record in jobs.run(energies, files, journal={str(tmp_path / "e.jsonl")!r}, workers=2):
                print(json.dumps(record.to_dict()))
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    (tmp_path / "mine.py").write_text(textwrap.dedent(script))
    words = [sys.executable, str(tmp_path / "mine.py")]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True, timeout=120)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line.get("n") for line in lines[:5]] == [
        None if not path.exists() else 2 * path.stat().st_size for path in files
    ]
    alone = jobs.run(pele_ocl.EnergySpec(precision="float64"), files)
    assert [{**line, "seconds": None} for line in lines[5:]] == timeless(alone)


def test_energies_are_those_of_the_library(files):
    (record,) = jobs.run(pele_ocl.EnergySpec(reading=jobs.Reading(select="resid 1 to 4")), files[:1])
    atoms = pele_ocl.read(files[0], select="resid 1 to 4")
    assert record["energy"]["total"] == pele_ocl.energy(atoms).total
    assert record["notes"] == list(atoms.notes)
    (record,) = jobs.run(pele_ocl.SolventSpec(energy=False), files[:1])
    assert "energy" not in record
    (record,) = jobs.run(pele_ocl.NonbondSpec(pairs="all", solvent="vacuum"), files[:1])
    assert record["n_pairs"] > 3000


def test_models_are_written_and_gone_on_with(files, tmp_path):
    """A file that is no longer the one that was written is written again."""
    spec = pele_ocl.RelaxSpec(str(tmp_path / "relaxed" / "{name}.pdb"), max_iterations=2)
    path = tmp_path / "relaxed.jsonl"
    first = list(jobs.run(spec, files[:3:2], journal=path))
    targets = [tmp_path / "relaxed" / f"{name}.pdb" for name in "ab"]
    assert all(target.exists() for target in targets)
    again = list(jobs.run(spec, files[:3:2], journal=path))
    assert [record["seconds"] for record in again] == [record["seconds"] for record in first]
    targets[1].write_text("damaged")
    (_, anew) = jobs.run(spec, files[:3:2], journal=path)
    assert anew["seconds"] != first[1]["seconds"]
    assert targets[1].read_text().startswith(targets[0].read_text()[:20])


def test_minima_are_those_of_the_library(files, tmp_path):
    options = {"max_iterations": 3, "precision": "float64"}
    spec = pele_ocl.MinimizeSpec(str(tmp_path / "minima"), options=options)
    good, bad = jobs.run(spec, files[:2], journal=tmp_path / "minima.jsonl")
    expected = pele_ocl.minimize(pele_ocl.read(files[0]), **options)
    assert good["energy_after"]["total"] == expected.energy_after.total
    assert pele_ocl.read(tmp_path / "minima" / "a.pdb").positions == pytest.approx(expected.positions, abs=1e-3)
    assert bad.failed
    assert [path.name for path in (tmp_path / "minima").iterdir()] == ["a.pdb"]
    again, _ = jobs.run(spec, files[:2], journal=tmp_path / "minima.jsonl")
    assert again["seconds"] == good["seconds"]
    with pytest.raises(FormatError, match=r"other settings \(max_iterations, precision\)"):
        list(jobs.run(pele_ocl.MinimizeSpec(spec.output), files[:2], journal=tmp_path / "minima.jsonl"))


def test_what_is_cached_is_not_sent():
    spec = Count()
    assert spec._costly
    assert "_costly" not in vars(pickle.loads(pickle.dumps(spec)))


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"workers": 2, "scheduler": "x"}, "choose one of `workers` and `scheduler`"),
        ({"workers": 0}, "workers is 0; expected a number from 1"),
        ({"shard": "4/3"}, "the shard is '4/3'"),
        ({"shard": "1/9"}, "5 items cannot be divided among 9 shards"),
    ],
)
def test_wrong_arguments(more, reason, files):
    with pytest.raises(InputError, match=reason):
        jobs.run(Count(), files, **more)
    with pytest.raises(InputError, match="expected a Spec"):
        jobs.run("energy", files)


def test_results_that_json_has_not(tmp_path):
    with Journal(tmp_path / "j.jsonl", {}) as journal, pytest.raises(InputError, match="cannot be written as JSON"):
        journal.add(jobs.Record("a", "", {"n": float("nan")}))


def test_a_journal_waits_for_the_first_success(tmp_path):
    """A run that can do nothing leaves the earlier file as it is."""
    path = tmp_path / "j.jsonl"
    path.write_text("precious")
    with Journal(path, {}, waits=True) as journal:
        journal.add(jobs.Record.failed_by("why", "a"))
        assert path.read_text() == "precious"
    assert path.read_text() == "precious"
    with Journal(path, {}, waits=True) as journal:
        journal.add(jobs.Record.failed_by("why", "a"))
        journal.add(jobs.Record("b", "", {"n": 1}))
    assert list(jobs.read_journal(path).records) == ["a", "b"]


def test_workers_that_die_at_once_are_told_of_both_causes(monkeypatch):
    """A script without its guard begins itself again in each of them."""

    def dies(**_):
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr("distributed.LocalCluster", dies)
    with pytest.raises(InputError, match=r'memory for 2 of them\? .* below if __name__ == "__main__":'):
        workers._begun(2)
