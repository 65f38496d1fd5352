"""Selection of atoms by the options `select`, `without` and `only`."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ..common.arguments import text
from ..common.errors import KeywordError
from ..common.indices import selection_text

if TYPE_CHECKING:
    from ..atoms.selection import Selection

_KINDS = {"protein": "protein", "nucleic": "nucleic", "ligand": "ligand", "ion": "ion", "ions": "ion", "water": "water"}


def selection_of(select: str | None, without: str | None = None, only: str | None = None) -> Selection | None:
    """Combine the three options into one selection; None if none is given.

    select : a selection (docs/selection.md), or an AMBER mask
    without : names or kinds (water, ion, ligand) of residues to leave out, separated by commas
    only : kinds of residues to include, separated by commas

    Raises InputError for an invalid selection, before any file is read.
    """
    given = None if select is None else selection_text("select", select)
    parts = [] if given is None else [given]
    if without is not None:
        parts.append(f"not ({' or '.join(_KINDS.get(name) or _residue(name) for name in _split('without', without))})")
    if only is not None:
        kinds = _split("only", only)
        unknown = next((kind for kind in kinds if kind not in _KINDS), None)
        if unknown is not None:
            raise KeywordError(f"`only={only!r}`: unknown kind {unknown!r}; choose from {', '.join(_KINDS)}")
        parts.append(" or ".join(_KINDS[kind] for kind in kinds))
    whole = " and ".join(parts if len(parts) == 1 else [f"({part})" for part in parts])
    return _parsed(whole, getattr(given, "n_atoms", None)) if whole else None


@lru_cache(maxsize=16)
def _parsed(whole: str, n_atoms: int | None) -> Selection:
    """Parse a selection. Results are cached."""
    from ..atoms.selection import Selection

    return Selection(whole, n_atoms)


def _split(keyword: str, names: str) -> list[str]:
    """Split names at commas."""
    found = [name.strip() for name in text(keyword, names).split(",")]
    if not all(found):
        raise KeywordError(f"`{keyword}={names!r}` has no name before or after a comma")
    return found


def _residue(name: str) -> str:
    """Return a selection for a residue name, in which * and ? are wildcards."""
    name = name.removeprefix("resname ").strip()  # as in a selection
    if set(name) & set('()" '):
        raise KeywordError(
            f"`without={name!r}`: expected residue names separated by commas, as in `without='LIG,SO4'`; "
            "use `select` for a selection"
        )
    return f"resname {name}" if any(c in name for c in "*?") else f'resname "{name}"'
