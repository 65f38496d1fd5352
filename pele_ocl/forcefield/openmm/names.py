"""Names of the force fields that OpenMM brings, and the files that they mean."""

from __future__ import annotations

from collections.abc import Sequence

_WATER = "amber14/tip3p.xml"  # with the ions that go with it
# The names that users know, in small letters without "-" and "_", and OpenMM's files.
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
    """Return whether the name of a force field is an XML file or OpenMM's; of several with commas the first counts."""
    first = name.split(",")[0].strip()
    return first.lower().endswith(".xml") or _tidy(first) in _NAMED


def is_ff14sb(files: Sequence[str]) -> bool:
    """True if OpenMM's files include the proteins of ff14SB."""
    return not {"amber14-all.xml", "amber14/protein.ff14SB.xml"}.isdisjoint(files)


def names() -> list[str]:
    """List the names of force fields that OpenMM brings."""
    return list(_NAMED)


def files_of(name: str) -> tuple[str, ...]:
    """List the files of OpenMM's that a name means; none for another name."""
    return _NAMED.get(_tidy(name), ())


def _tidy(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(".", "")
