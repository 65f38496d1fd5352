"""Metadata that hatchling computes at build time: the version from the tag, README.md with absolute links.

An sdist has both in its PKG-INFO, so a wheel built from it does not run this file.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).resolve().parents[1]
NEXT = "0.3.0"  # the version that commits without a tag lead to; CITATION.cff and the conda recipe name the same
PAGES = "https://github.com/pele-ocl/pele-ocl"
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)")
IMAGE = re.compile(r'(<img src=")(?!\w+:)')


def described() -> str:
    """Describe the commit as git does, `v0.3.0-4-gabcdef0`; of an archive by what git wrote into it; else ""."""
    if (ROOT / ".git").exists():
        for more in (["--tags", "--match", "v[0-9]*"], ["--always"]):
            command = ["git", "-C", str(ROOT), "describe", "--long", *more]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            except OSError:  # no git
                return ""
            if done.returncode == 0:
                return done.stdout.strip()
        return ""
    archival = ROOT / ".git_archival.txt"
    text = archival.read_text().strip() if archival.exists() else ""
    return "" if text.startswith("$Format") else text


def version() -> str:
    """Version of this tree: that of the tag at its commit, else of the development towards the next one."""
    text = described()
    found = re.fullmatch(r"v([0-9][0-9a-z.]*)(?:-(\d+)-g([0-9a-f]+))?", text)
    if found is None:
        return f"{NEXT}.dev0" + (f"+g{text}" if re.fullmatch("[0-9a-f]+", text) else "")
    tag, commits, commit = found[1], int(found[2] or 0), found[3]
    if not commits:
        return tag
    numbers = [int(number) for number in re.findall(r"\d+", tag)[:3]]
    after = ".".join(map(str, [*numbers[:-1], numbers[-1] + 1]))
    return f"{NEXT if numbers < [int(number) for number in NEXT.split('.')] else after}.dev{commits}+g{commit}"


def absolute(text: str, release: str) -> str:
    """Text of README.md with its relative links as addresses of files at the tag of a release, or of `main`."""
    tag = "main" if ".dev" in release else f"v{release}"

    def address(link: re.Match[str]) -> str:
        image, shown, target = link.groups()
        return f"{image}[{shown}]({PAGES}/{'raw' if image else 'blob'}/{tag}/{target})"

    return IMAGE.sub(rf"\1{PAGES}/raw/{tag}/", LINK.sub(address, text))


class ReadmeHook(MetadataHookInterface):
    """README.md as the long description, which a package index shows without the other files."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling."""
        text = absolute((ROOT / "README.md").read_text(encoding="utf-8"), version())
        metadata.setdefault("readme", {"content-type": "text/markdown", "text": text})
