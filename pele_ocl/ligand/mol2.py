"""Convert molecules of mol2 files to RDKit Mol objects, deriving formal charges from partial charges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atoms import Floats, Ints
from ..common.errors import FormatError
from ..common.extras import extra
from ..common.inputfile import InputFile
from ..formats.mol2 import mol2_columns, mol2_graphs

if TYPE_CHECKING:
    from rdkit.Chem import Mol

_AS_SDF = "give the molecule as an SDF file, which has formal charges"
_PURPOSE = "a file of small molecules"
# Sum of bond orders of a neutral atom with all hydrogens; a deviation is the formal charge.
_VALENCES = {
    "H": (1,), "B": (3,), "C": (4,), "N": (3,), "O": (2,), "F": (1,), "Si": (4,), "P": (3, 5), "S": (2, 4, 6),
    "Cl": (1, 3, 5, 7), "Br": (1, 3, 5, 7), "I": (1, 3, 5, 7),
}  # fmt: skip
_LIKE_BORON, _LIKE_CARBON = ("B", "Si"), ("C",)  # negative if they have more bonds, or fewer bonds, than neutral atoms
_SECOND_ROW = ("B", "C", "N", "O", "F")
ATOM_NAME, PARTIAL_CHARGE = "_TriposAtomName", "_TriposPartialCharge"  # properties of atoms that RDKit sets
_MOST_STEPS = 100_000  # maximum number of iterations of RDKit's search for bond orders
_NOISE = 0.1  # e, tolerance for the sum of partial charges


def mol_of_mol2(block: str) -> Mol:
    """Convert the mol2 block of one molecule to an RDKit Mol. Raises FormatError.

    mol2 files have no formal charges. RDKit derives them from Tripos types and bonds. If the file has GAFF types, or
    the charges contradict the sum of the partial charges, as for nitro groups and anions written by antechamber,
    charges are derived from the bond orders, or bond orders from the total charge.
    """
    chem: Any = extra("rdkit.Chem", _PURPOSE)
    file = InputFile(Path("molecule"), block.encode())
    names, partial = mol2_columns(file)
    charge = None if partial is None else sum(partial)
    found: Mol | None = chem.MolFromMol2Block(block, removeHs=False, sanitize=False)
    lacks = "" if charge is not None else ", and it has no partial charges from which to derive formal charges"
    wrong = f"RDKit cannot read it as Tripos' mol2{lacks}; {_AS_SDF}"
    if found is not None and found.GetNumAtoms():
        wrong = _contradiction(found, charge)
        if not wrong:
            return found
    if partial is not None and charge is not None and abs(charge - round(charge)) < _NOISE:
        other = _perceived(file, round(charge))
        if other is not None:
            for atom, name, own in zip(other.GetAtoms(), names, partial, strict=True):
                atom.SetProp(ATOM_NAME, name)
                atom.SetProp(PARTIAL_CHARGE, str(own))
            return other
    raise FormatError(wrong)


def _contradiction(molecule: Mol, charge: float | None) -> str:
    """Return why the formal charges derived by RDKit are inconsistent, "" if they are consistent.

    charge : sum of the partial charges; if None, oxygen and nitrogen types are checked for the double bonds that they
        imply
    """
    atoms = list(molecule.GetAtoms())
    total = sum(atom.GetFormalCharge() for atom in atoms)
    if charge is not None:
        if abs(charge - total) <= 0.5:
            return ""
        return f"its partial charges add up to {charge:+.2f} e, but its types and bonds imply {total:+d}; {_AS_SDF}"
    for atom in atoms:
        kind = atom.GetProp("_TriposAtomType") if atom.HasProp("_TriposAtomType") else ""
        if kind in ("O.2", "N.2") and all(bond.GetBondTypeAsDouble() == 1 for bond in atom.GetBonds()):
            return f"atom {atom.GetIdx() + 1} is of the type {kind} and has no double bond; {_AS_SDF}"
        if kind in ("N.2", "C.2") and sum(bond.GetBondTypeAsDouble() == 2 for bond in atom.GetBonds()) > 1:
            return f"atom {atom.GetIdx() + 1} is of the type {kind} and has two double bonds; {_AS_SDF}"
    return ""


def _perceived(file: InputFile, charge: int) -> Mol | None:
    """Build a Mol with a given total charge from elements and bonds, with the bond orders of the file if possible."""
    chem: Any = extra("rdkit.Chem", _PURPOSE)
    determine: Any = extra("rdkit.Chem.rdDetermineBonds", _PURPOSE)
    try:
        elements, positions, pairs, kinds = mol2_graphs(file)[0]()
    except FormatError:  # RDKit could not read it either
        return None
    if not len(pairs) or not set(elements) <= set(_VALENCES):
        return None
    orders = [int(kind) if kind in ("1", "2", "3") else 1 if kind == "am" else 0 for kind in kinds]
    if all(orders):
        charges = _charges(elements, pairs, orders)
        if sum(charges) == charge and not _is_odd(elements, pairs, charges):
            return _made(elements, positions, pairs, orders, charges)
    made = _made(elements, positions, pairs, [1] * len(pairs), [0] * len(elements))
    try:
        determine.DetermineBondOrders(made, charge=charge, embedChiral=False, maxIterations=_MOST_STEPS)
        is_sound = chem.GetFormalCharge(made) == charge
    except (ValueError, RuntimeError):
        return None
    return made if is_sound else None


def _charges(elements: list[str], pairs: Ints, orders: list[int]) -> list[int]:
    """Return the formal charges of atoms with all hydrogens, (n,) e."""
    sums = [0] * len(elements)
    for (i, j), order in zip(pairs.tolist(), orders, strict=True):
        sums[i] += order
        sums[j] += order
    return [_charge(element, own) for element, own in zip(elements, sums, strict=True)]


def _charge(element: str, orders: int) -> int:
    valences = _VALENCES[element]
    if orders in valences:
        return 0
    if element in _LIKE_BORON:
        return valences[0] - orders
    if element in _LIKE_CARBON:
        return orders - valences[0] if orders < valences[0] else 0
    return orders - max([own for own in valences if own < orders] or valences[:1])


def _is_odd(elements: list[str], pairs: Ints, charges: list[int]) -> bool:
    """Return whether a charged atom below the second row has a neighbour of opposite charge.

    This indicates a double bond that was written as a single bond.
    """
    return any(
        charges[i] * charges[j] < 0 and not {elements[i], elements[j]} <= set(_SECOND_ROW) for i, j in pairs.tolist()
    )


def _made(elements: list[str], positions: Floats, pairs: Ints, orders: list[int], charges: list[int]) -> Mol:
    chem: Any = extra("rdkit.Chem", _PURPOSE)
    geometry: Any = extra("rdkit.Geometry", _PURPOSE)
    made = chem.RWMol()
    for symbol, charge in zip(elements, charges, strict=True):
        atom = chem.Atom(symbol)
        atom.SetFormalCharge(charge)
        atom.SetNoImplicit(True)
        made.AddAtom(atom)
    kinds = {1: chem.BondType.SINGLE, 2: chem.BondType.DOUBLE, 3: chem.BondType.TRIPLE}
    for (i, j), order in zip(pairs.tolist(), orders, strict=True):
        made.AddBond(i, j, kinds[order])
    conformer = chem.Conformer(len(elements))
    for k, (x, y, z) in enumerate(positions.tolist()):
        conformer.SetAtomPosition(k, geometry.Point3D(x, y, z))
    conformer.Set3D(True)
    made.AddConformer(conformer)
    found: Mol = made.GetMol()
    return found
