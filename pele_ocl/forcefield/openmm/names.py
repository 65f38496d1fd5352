"""Names of the force fields included in OpenMM, and their files."""

from __future__ import annotations

from collections.abc import Sequence

_WATER = "amber14/tip3p.xml"  # with the corresponding ions
# Common names, in lower case without "-", "_" and ".", and OpenMM's files.
_NAMED = {
    "amber14": ("amber14-all.xml", _WATER),
    "ff14sb": ("amber14/protein.ff14SB.xml", _WATER),
    "amber19": ("amber19-all.xml", _WATER),
    "ff19sb": ("amber19/protein.ff19SB.xml", _WATER),
    "charmm36": ("charmm36.xml", "charmm36/water.xml"),
    **{
        name: (f"{name}.xml", "tip3p.xml")
        for name in ("amber96", "amber99sbildn", "amber99sbnmr", "amber03", "amber10", "amberfb15")
    },
    "ff99sbildn": ("amber99sbildn.xml", "tip3p.xml"),
}


def is_named(name: str) -> bool:
    """Return whether the first of several names, separated by commas, is an XML file or a force field of OpenMM."""
    first = name.split(",")[0].strip()
    return first.lower().endswith(".xml") or _tidy(first) in _NAMED


def is_ff14sb(files: Sequence[str]) -> bool:
    """Return whether the files include the proteins of ff14SB."""
    return not {"amber14-all.xml", "amber14/protein.ff14SB.xml"}.isdisjoint(files)


def names() -> list[str]:
    """List the names of the force fields included in OpenMM."""
    return list(_NAMED)


def files_of(name: str) -> tuple[str, ...]:
    """Return OpenMM's files for a name; empty for other names."""
    return _NAMED.get(_tidy(name), ())


def _tidy(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(".", "")
