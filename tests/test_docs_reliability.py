"""docs/reliability.md: all tests that it names exist, and every defect stands in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
TEXT = (TESTS.parent / "docs" / "reliability.md").read_text()
NAMED = sorted(set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", TEXT)))


@pytest.mark.parametrize("file", sorted({file for file, _ in NAMED}))
def test_named_tests_exist(file):
    text = (TESTS / file).read_text()
    for name in [name for other, name in NAMED if other == file]:
        assert f"def {name}(" in text, name


def test_every_defect_has_a_test_or_a_sentence():
    rows = re.findall(r"^\| (\d+) \| .+ \| (.+) \|$", TEXT, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 61))
    assert all("::" in promise or "section 4" in promise for _, promise in rows)
