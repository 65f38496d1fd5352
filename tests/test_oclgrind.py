"""Every kernel under oclgrind, a simulator that reports data races and invalid accesses."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.skipif(shutil.which("oclgrind") is None, reason="oclgrind is not installed (Debian: apt install oclgrind)")
def test_no_race_and_no_invalid_access():
    command = ["oclgrind", "--data-races", sys.executable, str(HERE / "oclgrind_cases.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=HERE)
    report = done.stdout + done.stderr
    assert "all cases ran" in report, report[-3000:]
    for complaint in ("data race", "Invalid", "OCLGRIND ERROR"):
        assert complaint.lower() not in report.lower(), report[:3000]
