"""docs/extend/move.md: the move as it stands there, and what it does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from explore_helpers import small_complex

PAGE = (Path(__file__).parent.parent / "docs" / "extend" / "move.md").read_text()


def test_the_move_of_the_page(device, tmp_path, monkeypatch, capsys):
    atoms, ligand = small_complex()
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code[0], "flip.py", "exec"), names)
    whole = f"import pele_ocl\npele_ocl.read = lambda _: atoms\npele_ocl.selection = lambda *_: ligand\n{code[1]}"
    monkeypatch.setattr("pele_ocl.read", None)  # both are put back after the test
    monkeypatch.setattr("pele_ocl.selection", None)
    names |= {"atoms": atoms, "ligand": ligand}
    exec(compile(whole, "use.py", "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 16
    assert sum("'flip'" in line for line in lines) == 8
    walk = names["explorer"].walk
    x, flipped = atoms.positions, names["Flip"]()
    walk.ensemble.positions[0] = x
    flipped.apply(walk, [0])
    y = walk.ensemble.positions[0]
    np.testing.assert_allclose(walk.center(y), walk.center(x), atol=1e-9)
    assert np.abs(y - x)[ligand].max() > 0.5
    flipped.apply(walk, [0])
    np.testing.assert_allclose(walk.ensemble.positions[0], x, atol=1e-9)
