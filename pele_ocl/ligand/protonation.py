"""Protonate molecules at a given pH by a table of typical pKa values of functional groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..common.extras import extra

if TYPE_CHECKING:
    from rdkit.Chem import Mol


@dataclass(frozen=True)
class Group:
    """A functional group in which the first atom of the pattern is protonated or deprotonated.

    pka : pKa of the acid form; is_acid : whether the neutral form is the acid
    """

    name: str
    pattern: str
    pka: float
    is_acid: bool


# The first matching group of an atom is used. Values are textbook values in water (Perrin; Bordwell).
GROUPS = (
    Group("sulfonic acid", "[OX2H1]S(=O)(=O)[#6,#7,#8]", -2.0, True),
    Group("phosphonic or phosphoric acid", "[OX2H1]P(=O)", 1.8, True),
    Group("carboxylic acid", "[OX2H1]C(=O)[!$([OX2H1])]", 4.2, True),
    Group("tetrazole", "[nX3H1;$([nX3H1]1nnnc1),$([nX3H1]1nncn1)]", 4.9, True),
    Group("acyl sulfonamide", "[NX3H1](C=O)S(=O)(=O)", 4.5, True),
    Group("hydroxamic acid", "[OX2H1][NX3]C=O", 8.9, True),
    Group("thiol", "[SX2H1][#6X4]", 10.0, True),
    Group("thiophenol", "[SX2H1]c", 6.5, True),
    Group("phenol", "[OX2H1]c", 10.0, True),
    Group("guanidine", "[NX2]=C([NX3])[NX3]", 13.0, False),
    Group("amidine", "[NX2;!$(N[#7,#8,S])]=C([NX3;!$(NC=O);!$(NS=O)])[#6,#1]", 11.5, False),
    Group("amine", "[NX3;!$(N[!#6;!#1]);!$(NC=[O,S,N]);!$(NC#N);!$(Nc);!$(NC=C);!$(NC#C)][#6X4]", 9.6, False),
    Group("imidazole", "[nX2]1[c][nX3][c][c]1", 6.9, False),
    Group("pyridine", "[nX2;r6;$(n1ccccc1)]", 5.2, False),
    Group("aniline", "[NX3;$(Nc);!$(NC=[O,S,N]);!$(NS(=O)=O);!$(N[!#6;!#1])]c", 4.6, False),
)  # fmt: skip
_NEAR, _SHIFT = 4, 4.0  # a like charge within this number of bonds shifts the pKa by this much


def at_ph(molecule: Mol, ph: float) -> tuple[Mol, list[str]]:
    """Set the protonation of a molecule with implicit hydrogens for a given pH.

    The molecule is neutralized first where possible; permanent charges, such as of quaternary nitrogens, are kept.

    Returns the molecule and the names of the charged groups.
    """
    chem: Any = extra("rdkit.Chem", "protonation at a pH")
    standard: Any = extra("rdkit.Chem.MolStandardize.rdMolStandardize", "protonation at a pH")
    found = chem.RWMol(standard.Uncharger(canonicalOrder=True).uncharge(chem.Mol(molecule)))
    chem.SanitizeMol(found)
    distances = chem.GetDistanceMatrix(found)
    seen, charged, names = set[int](), list[tuple[int, int]](), list[str]()
    for group in GROUPS:
        for match in found.GetSubstructMatches(chem.MolFromSmarts(group.pattern), maxMatches=10_000):
            k = match[0]
            if k in seen:
                continue
            seen.add(k)
            sign = -1 if group.is_acid else 1
            near = sum(1 for other, of in charged if of == sign and distances[k][other] <= _NEAR)
            pka = group.pka - sign * _SHIFT * near
            if (ph > pka) if group.is_acid else (ph < pka):
                charged.append((k, sign))
                names.append(group.name)
    for k, sign in charged:
        atom = found.GetAtomWithIdx(k)
        atom.SetNumExplicitHs(max(atom.GetTotalNumHs() + sign, 0))
        atom.SetNoImplicit(True)
        atom.SetFormalCharge(sign)
    result: Mol = found.GetMol()
    chem.SanitizeMol(result)
    return result, names
