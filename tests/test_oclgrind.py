"""Every kernel under oclgrind, a simulator that reports data races and invalid accesses."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CL = HERE.parent / "cl"

pytestmark = pytest.mark.skipif(
    shutil.which("oclgrind") is None, reason="oclgrind is not installed (Debian: apt install oclgrind)"
)


def report_of(cases: str, *options: str) -> str:
    command = ["oclgrind", *options, sys.executable, str(HERE / "oclgrind_cases.py"), *cases.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=HERE)
    report = done.stdout + done.stderr
    assert "all cases ran" in report, report[-3000:]
    return report.lower()


def kernels_of(cases: str) -> set[str]:
    """Every kernel of the folders that these cases are to cover; the common ones with the energy's."""
    return {
        f"{path.relative_to(CL)}:{name}".lower()
        for folder in (*cases.split(), *(["common"] if cases == "energy" else []))
        for path in (CL / folder).rglob("*.cl")
        for name in re.findall(r"^(?:kernel .*void|void) (\w+)\(", path.read_text(), re.MULTILINE)
    }


# Kernels whose groups take over what others left in the same launch: a race for the simulator, which has no fence.
JOINED = {
    "solvent/joined.cl:joined", "energy/squares/joined.cl:joined", "energy/blocks_joined.cl:blocks_joined",
}  # fmt: skip
HANDING_OVER = JOINED | {"energy/squares/born.cl:born_squares"}
ON_NVIDIA = {"minimize/iterate.cl:iterate"}  # waits as they do, on one vendor's GPUs


# In as many processes as keep several cores at work, since each takes seconds to start.
@pytest.mark.parametrize(
    "cases", ["energy", "potmap", "pb", "engine minimize", "dynamics explore", "solvent nonbond binding ions"]
)
def test_no_race_and_no_invalid_access(cases):
    report = report_of(cases, "--data-races")
    for complaint in ("data race", "invalid", "oclgrind error"):
        assert complaint not in report, report[:3000]
    ran = set(re.findall(r"[\w/]+\.cl:\w+", report[report.index("kernels: ") :]))
    assert kernels_of(cases)
    assert kernels_of(cases) - HANDING_OVER - ON_NVIDIA <= ran


def test_joined_steps_give_the_same_bits():
    report = report_of("joined")
    for complaint in ("invalid", "oclgrind error"):
        assert complaint not in report, report[:3000]
    assert HANDING_OVER <= set(re.findall(r"[\w/]+\.cl:\w+", report[report.index("kernels: ") :]))


def test_naive_races():
    report = report_of("naive", "--data-races")
    assert "data race" in report
    assert set(re.findall(r"kernel: *(\w+)", report)) == {"nonbond_pairs"}
    assert "invalid" not in report
