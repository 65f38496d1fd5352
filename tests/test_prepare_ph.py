"""Protonation by PROPKA's pKa in `prepare`, and what is said without PROPKA."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from test_cli import error_of, run

from pele_ocl import energy, prepare, read

pytest.importorskip("pdbfixer")

STRUCTURES = Path(__file__).parent.parent / "data" / "structures"
UBIQUITIN = STRUCTURES / "ubiquitin.pdb"
HEXAPEPTIDE = STRUCTURES / "hexapeptide.pdb"


def test_without_propka_the_usual_pka_count_and_it_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "propka", None)
    message = error_of("prepare", HEXAPEPTIDE, "-o", tmp_path / "out.pdb", "--pka", "propka")
    assert "needs PROPKA, which is not installed: pip install 'pele-ocl[ph]'; or use standard values" in message
    assert not (tmp_path / "out.pdb").exists()
    report = json.loads(run("prepare", HEXAPEPTIDE, "-o", tmp_path / "out.pdb", "--ph", 2, "--json").stdout)
    assert (report["pka"], report["pkas"], report["ph"]) == ("usual", {}, 2)
    assert (
        "pKa           the standard values of residues in water"
        in run("prepare", HEXAPEPTIDE, "-o", tmp_path / "text.pdb").stdout
    )


def test_forms_follow_from_the_surroundings(tmp_path):
    pytest.importorskip("propka")
    usual = prepare(UBIQUITIN, tmp_path / "usual.pdb", ph=4.5, pka="usual")
    found = prepare(UBIQUITIN, tmp_path / "propka.pdb", ph=4.5)
    assert usual.protonation == {"A:HIS68": "HIP"}
    # As `propka3` prints them for this file: 4.74 and 4.60 of these, 4.37 of the next higher, 6.05 of the histidine.
    assert found.protonation == {"A:GLU24": "GLH", "A:GLU51": "GLH", "A:HIS68": "HIP"}
    assert found.pka.startswith("PROPKA 3.")
    assert found.pkas["A:GLU24"] == pytest.approx(4.74, abs=0.02)
    assert found.pkas["A:HIS68"] == pytest.approx(6.05, abs=0.02)
    assert found.hydrogens_added == usual.hydrogens_added + 2
    charges = [round(read(tmp_path / name).charges.sum()) for name in ("usual.pdb", "propka.pdb")]
    assert charges[1] == charges[0] + 2
    assert energy(read(tmp_path / "propka.pdb")).total < 0


def test_neutral_forms_and_those_that_no_template_has(tmp_path):
    pytest.importorskip("propka")
    report = json.loads(run("prepare", UBIQUITIN, "-o", tmp_path / "high.pdb", "--ph", 12, "--json").stdout)
    forms = report["protonation"]
    assert [forms[f"A:LYS{k}"] for k in (6, 11, 27, 29, 33, 48, 63)] == ["LYN"] * 7
    assert forms["A:HIS68"] in ("HID", "HIE")
    assert [text for text in report["warnings"] if "A:TYR59 has a pKa of 10.7" in text]
    assert not [text for text in report["warnings"] if "no parameters" in text]
    text = run("prepare", UBIQUITIN, "-o", tmp_path / "text.pdb", "--ph", 12).stdout
    assert "pKa           by PROPKA 3." in text
    assert "LYN: A:LYS6 (10.4), A:LYS11 (11.4)" in text


def test_hydrogens_that_a_form_lacks_are_taken_out(tmp_path):
    pytest.importorskip("propka")
    prepare(UBIQUITIN, tmp_path / "acid.pdb", ph=2.0)
    back = prepare(tmp_path / "acid.pdb", tmp_path / "neutral.pdb", ph=7.0)
    assert back.protonation in ({"A:HIS68": "HIE"}, {"A:HIS68": "HID"})
    assert back.hydrogens_removed > 5
    assert len(read(tmp_path / "neutral.pdb")) == 1231
