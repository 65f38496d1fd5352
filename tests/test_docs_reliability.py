"""docs/reliability.md: all tests that it names exist."""

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
