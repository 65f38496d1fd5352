"""Write docs/kernels.md: every file of cl/ with the first sentence of its comment.

tests/test_docs.py holds the page against the files.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "kernels.md"
HEAD = """# All kernels

Every file of `cl/`, each a page of the site, with the first sentence of its comment; `make docs` writes this page.
The README of each folder says in which order to read. `pele-ocl kernel --list` names the kernels of the ladders, and
`--plain` prints one as a file that compiles by itself: [check](check.md).
"""


def first_sentence(text: str) -> str:
    """Return the first sentence of the comment that a kernel file begins with, on one line."""
    comment = re.match(r"(?:// ?(.*)\n)+", text)
    assert comment
    joined = " ".join(line.removeprefix("//").strip() for line in comment[0].splitlines()).split("  ")[0]
    return re.split(r"(?<=\.) (?=[A-Z])", joined)[0]


def as_markdown(sentence: str) -> str:
    """Make links of the pages that a comment names, and literals of its files."""
    sentence = re.sub(r"\bdocs/([\w/-]+)\.md", r"[\1](\1.md)", sentence)
    return re.sub(r"[\w/]+\.(?:clh?|py)\b", r"`\g<0>`", sentence)


def page() -> str:
    """Return the text of docs/kernels.md."""
    folders: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "cl").rglob("*.cl*")):
        folders.setdefault(path.parent.relative_to(ROOT).as_posix(), []).append(path)
    parts = [HEAD]
    for folder, files in sorted(folders.items()):
        rows = [f"| `{path.relative_to(ROOT)}` | {as_markdown(first_sentence(path.read_text()))} |" for path in files]
        parts.append("\n".join([f"## {folder}\n", "| file | |", "|---|---|", *rows, ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
