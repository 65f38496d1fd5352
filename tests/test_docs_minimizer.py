"""docs/extend/minimizer.md, followed word for word in a folder of the user's own."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from test_minimize import PEPTIDE, shaken

from pele_ocl import Ensemble, Minimizer

PAGE = (Path(__file__).parent.parent / "docs" / "extend" / "minimizer.md").read_text()
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
    root = Path(__file__).parent.parent
    fire = [root / "pele_ocl" / "minimize" / "fire.py", root / "cl" / "minimize" / "fire.cl"]
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
