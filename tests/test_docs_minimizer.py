"""docs/extend/minimizer.md, followed word for word in a folder of the user's own."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from test_minimize import PEPTIDE, shaken

import pele_ocl
from pele_ocl import Ensemble, InputError, KernelBuildError, Minimizer, PeleError

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "extend" / "minimizer.md").read_text()
FILES = re.findall(r"a new file `([\w.]+)`.*?^```(?:c|python)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def method(tmp_path, monkeypatch) -> type:
    """The class of the page, from its files."""
    for name, code in FILES:
        (tmp_path / name).write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "heavy_ball", raising=False)
    from heavy_ball import HeavyBall

    return HeavyBall


def test_a_method_may_be_one_file(tmp_path, monkeypatch, method, device):
    """With the kernel's text in it; and FIRE of the package would have less than 80 lines so."""
    (_, kernel), (_, code) = FILES
    path = 'Path(__file__).with_name("heavy_ball.cl")'
    assert path in code
    (tmp_path / "one_file.py").write_text(code.replace(path, f'r"""{kernel}"""'))
    monkeypatch.syspath_prepend(tmp_path)
    from one_file import HeavyBall

    atoms = PEPTIDE[:30]
    found = [
        Minimizer(atoms, method=of, tolerance=1.0, device=device).minimize(shaken(0.05, 0, atoms)).positions
        for of in (method, HeavyBall)
    ]
    np.testing.assert_array_equal(*found)
    fire = [ROOT / "pele_ocl" / "minimize" / "fire.py", ROOT / "cl" / "minimize" / "fire.cl"]
    assert sum(len(re.findall(r"\S.*", path.read_text())) for path in fire) < 80


def test_a_method_of_ones_own_finds_minima(method, device):
    """By a structure alone and by rows, each of which has the bits that it has alone; and short as the page says."""
    assert [name for name, _ in FILES] == ["heavy_ball.cl", "heavy_ball.py"]
    assert all(len(code.splitlines()) < 40 for _, code in FILES)
    atoms = PEPTIDE[:30]
    starts = [shaken(0.05, seed, atoms) for seed in range(3)]
    alone = [Minimizer(atoms, method=method, tolerance=1.0, device=device).minimize(start) for start in starts]
    rows = Ensemble(atoms, 3, device=device)
    rows.positions[:] = starts
    for one, row in zip(alone, rows.minimize(method=method, tolerance=1.0), strict=True):
        assert (one.stopped_by, row.stopped_by) == ("gradient", "gradient")
        assert one.energy_after.total < one.energy_before.total
        np.testing.assert_array_equal(one.positions, row.positions)


def test_records_have_the_name_of_a_method_of_ones_own(method, tmp_path, device):
    """In JSON and in the files of several; workers and journals write it as text."""
    own = {"method": method, "tolerance": 1.0, "max_iterations": 2, "device": device}
    data = ROOT / "data" / "structures"
    one = pele_ocl.minimize(data / "trialanine.pdb", **own)
    assert json.loads(json.dumps(one.to_json()))["method"] == "HeavyBall"
    paths = [tmp_path / "a.pdb", tmp_path / "b.pdb"]
    for path in paths:
        path.write_bytes((data / "trialanine.pdb").read_bytes())
    batch = pele_ocl.minimize(paths, output=tmp_path / "minima", **own)
    assert [row["method"] for row in batch.to_json()] == ["HeavyBall"] * 2
    assert (tmp_path / "minima" / "a.pdb").exists()


def test_a_step_without_sums_is_an_error(method, device):
    """One that does not measure, or measures after the atoms have moved, would be over before it began."""

    class Forgets(method):
        def step(self, before, after):
            return super().step(before, after)[1:]

    class Late(method):
        def step(self, before, after):
            return super().step(before, after)[::-1]

    for wrong in (Forgets, Late):
        with pytest.raises(
            PeleError, match=rf"{wrong.__name__}\.step returns no self.measure\(\) before step_heavy_ball"
        ):
            Minimizer(PEPTIDE[:30], method=wrong, device=device).minimize()
    with pytest.raises(PeleError, match=r"Late\.step returns no self.measure"):
        Ensemble(PEPTIDE[:30], device=device).minimize(method=Late)


def test_errors_of_kernels_name_the_files_of_the_user(method, tmp_path, device):
    """By their paths, with the compiler's lines once; and a kernel that is missing, by what the file has."""
    good, wrong = tmp_path / "heavy_ball.cl", tmp_path / "wrong.cl"
    wrong.write_text(good.read_text().replace("local int action", "local itn action"))

    def of(path: Path | str, kernel: str) -> type:
        class Of(method):
            def step(self, before, after):
                return [self.measure(), self.moving(path, kernel, before, after)]

        return Of

    for place in (Minimizer, Ensemble):
        with pytest.raises(KernelBuildError, match=re.escape(str(wrong))) as caught:
            minimize_by(place, of(wrong, "step_heavy_ball"), device)
        assert "wrong-" not in str(caught.value)
        assert str(caught.value).count("BUILD_PROGRAM_FAILURE") <= 1
        with pytest.raises(KernelBuildError, match=f"{re.escape(str(good))} has no kernel gone; .* step_heavy_ball"):
            minimize_by(place, of(good, "gone"), device)
    with pytest.raises(PeleError, match=r"cl/heavy_ball.cl does not exist; give your own file as a"):
        minimize_by(Minimizer, of("heavy_ball.cl", "step_heavy_ball"), device)
    with pytest.raises(InputError, match=rf"no kernel is named 'gone' in {re.escape(str(good))}; there are step_heavy"):
        Ensemble(PEPTIDE[:30], device=device).kernel(good, "gone")


def minimize_by(place: type, method: type, device: object) -> object:
    atoms = PEPTIDE[:30]
    if place is Minimizer:
        return Minimizer(atoms, method=method, device=device).minimize()
    return Ensemble(atoms, device=device).minimize(method=method)
