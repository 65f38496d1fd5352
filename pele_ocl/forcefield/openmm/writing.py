"""Writer of OpenMM force-field XML for one molecule, with a separate type for each atom."""

from __future__ import annotations

from collections import defaultdict
from xml.sax.saxutils import quoteattr

import numpy as np

from ...atoms import Atoms
from ...atoms.one_four import scales_of_pairs, written_terms
from ...common.errors import InputError

_WHAT = "an OpenMM XML file"
_KJ, _PER_NM = 4.184, 10.0


def xml_text(atoms: Atoms, note: str = "") -> str:
    """Return OpenMM force-field XML for a molecule of one residue, with separate atom types.

    It can be combined with OpenMM's protein force fields: ForceField("amber14-all.xml", "ligand.xml").

    note : comment at the beginning

    Raises InputError for atoms without parameters, for several residues, duplicate names, and unsupported terms and
    combining rules.
    """
    bonded = written_terms(atoms, _WHAT)
    labels = atoms.labels
    assert labels is not None
    assert atoms.lj_sigma is not None
    assert atoms.lj_epsilon is not None
    names = [str(name) for name in labels.names]
    if len(labels.residue_starts) != 1 or len(set(names)) < len(names):
        raise InputError(f"{_WHAT} needs a single residue whose atoms have unique names")
    if atoms.combining != "arithmetic":
        raise InputError(f"{_WHAT} uses the arithmetic rule for sigma, but these atoms use the {atoms.combining} one")
    scales = scales_of_pairs(atoms, _WHAT)
    usual = np.array(atoms.one_four)
    if not np.allclose(scales, usual, atol=1e-3):
        raise InputError(f"{_WHAT} has one scale for 1-4 pairs, but these atoms have several")
    residue = str(labels.residue_names[0])
    types = [f"{residue}-{name}" for name in names]
    elements = [str(of) for of in labels.elements]
    lines = ["<ForceField>"]
    if note:
        lines.append(f"  <!-- {note.replace('--', '- -')} -->")
    lines.append("  <AtomTypes>")
    for kind, of, mass in zip(types, elements, atoms.masses.tolist(), strict=True):
        lines.append(_tag("Type", name=kind, **{"class": kind}, element=of, mass=mass))
    lines += ["  </AtomTypes>", "  <Residues>", f"    <Residue name={quoteattr(residue)}>"]
    for name, kind, charge in zip(names, types, atoms.charges.tolist(), strict=True):
        lines.append(_tag("Atom", name=name, type=kind, charge=charge))
    for i, j in atoms.bond_pairs.tolist():
        lines.append(_tag("Bond", atomName1=names[i], atomName2=names[j]))
    lines += ["    </Residue>", "  </Residues>", "  <HarmonicBondForce>"]
    for (i, j), (k, r0) in zip(bonded.bonds.atoms.tolist(), bonded.bonds.parameters.tolist(), strict=True):
        lines.append(_tag("Bond", type1=types[i], type2=types[j], length=r0 / _PER_NM, k=2 * k * _KJ * _PER_NM**2))
    lines += ["  </HarmonicBondForce>", "  <HarmonicAngleForce>"]
    for members, (k, angle) in zip(bonded.angles.atoms.tolist(), bonded.angles.parameters.tolist(), strict=True):
        lines.append(_tag("Angle", **_named(types, members), angle=angle, k=2 * k * _KJ))
    lines += ["  </HarmonicAngleForce>", '  <PeriodicTorsionForce ordering="amber">']
    torsions = defaultdict[tuple[int, ...], list[list[float]]](list)
    for members, figures in zip(bonded.torsions.atoms.tolist(), bonded.torsions.parameters.tolist(), strict=True):
        turned = tuple(members[::-1])
        torsions[turned if turned in torsions else tuple(members)].append(figures)
    lines += [_tag("Proper", **_named(types, members), **_terms(of)) for members, of in torsions.items()]
    lines += _impropers(atoms, types)
    lines += [
        "  </PeriodicTorsionForce>",
        f'  <NonbondedForce coulomb14scale="{float(usual[0])!r}" lj14scale="{float(usual[1])!r}">',
        '    <UseAttributeFromResidue name="charge"/>',
    ]
    for kind, sigma, epsilon in zip(types, atoms.lj_sigma.tolist(), atoms.lj_epsilon.tolist(), strict=True):
        lines.append(_tag("Atom", type=kind, sigma=sigma / _PER_NM, epsilon=epsilon * _KJ))
    return "\n".join([*lines, "  </NonbondedForce>", "</ForceField>", ""])


def _impropers(atoms: Atoms, types: list[str]) -> list[str]:
    """Return the rows of impropers, with the central atom first.

    OpenMM creates the torsion 2, 3, 1, 4 from a row, and keeps this order because all types differ. Only one row per
    set of four atoms is allowed.
    """
    assert atoms.bonded is not None
    bonds = {frozenset(pair) for pair in atoms.bond_pairs.tolist()}
    found = defaultdict[frozenset[int], dict[tuple[int, ...], list[list[float]]]](dict)
    table = atoms.bonded.impropers
    for members, figures in zip(table.atoms.tolist(), table.parameters.tolist(), strict=True):
        i, j, k, l = members  # noqa: E741
        if not all(frozenset((k, other)) in bonds for other in (i, j, l)):
            i, j, k, l = l, k, j, i  # noqa: E741
        if not all(frozenset((k, other)) in bonds for other in (i, j, l)):
            raise InputError(
                f"{_WHAT} allows only impropers of an atom and three atoms bonded to it; {atoms.describe(i)} is "
                "in a different one"
            )
        found[frozenset(members)].setdefault((k, i, j, l), []).append(figures)
    lines = list[str]()
    for rows in found.values():
        if len(rows) == 1:
            ((members, figures),) = rows.items()
            lines.append(_tag("Improper", **_named(types, members), **_terms(figures)))
            continue
        raise InputError(f"{_WHAT} has one order of an improper's atoms, but these atoms have several")
    return lines


def _named(types: list[str], members: tuple[int, ...] | list[int]) -> dict[str, str]:
    return {f"type{number}": types[k] for number, k in enumerate(members, 1)}


def _terms(rows: list[list[float]]) -> dict[str, float]:
    """Return XML attributes for terms with k, n and phase."""
    found = dict[str, float]()
    for number, (k, n, phase) in enumerate(rows, 1):
        found |= {f"periodicity{number}": int(n), f"phase{number}": phase, f"k{number}": k * _KJ}
    return found


def _tag(tag: str, /, **attributes: object) -> str:
    texts = (f"{key}={quoteattr(of if isinstance(of, str) else repr(of))}" for key, of in attributes.items())
    return f"    <{tag} {' '.join(texts)}/>"
