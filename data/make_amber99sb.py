"""Write data/amber99sb/ and data/obc/ from the figures in OpenMM's force-field files.

    python data/make_amber99sb.py [FOLDER]

FOLDER holds amber99sb.xml, amber99_obc.xml and amber14/tip3p.xml; by default it is that of the installed OpenMM.
README.md in this folder says what the files mean.
"""

from __future__ import annotations

import importlib.util
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[:2]]

from openmm_links import links_text  # noqa: E402 - beside this script
from openmm_terms import ANGSTROM_PER_NM, KCAL_PER_KJ, Atom, Graph, Term, TermFigures, short_class  # noqa: E402

from pele_ocl.atoms.radii import element_rule  # noqa: E402
from pele_ocl.forcefield import Template, read_template  # noqa: E402

HERE = Path(__file__).resolve().parent

NUCLEIC_ATOMS = {
    "O1P": "OP1", "O2P": "OP2", "H5T": "HO5'", "H3T": "HO3'", "HO'2": "HO2'",
    "H5'1": "H5'", "H5'2": "H5''", "H2'1": "H2'", "H2'2": "H2''",
}  # fmt: skip
WATER_ATOMS = {"O": "OW", "H1": "1HW", "H2": "2HW"}
PROTEIN_ATOMS = {"NPRO": {"H2": "H1", "H3": "H2"}, "LYN": {"HZ2": "HZ1", "HZ3": "HZ2"}}
NUCLEIC_ENDS = {"": "", "5": "B", "3": "E", "N": "Z"}
BACKBONE = frozenset("N CA C P O5' C5' C4' C3' O3'".split())

IONS = {"Cl-": "CL", "Cs+": "CS", "K+": "K", "Li+": "LI", "MG2": "MG", "Na+": "NA", "Rb+": "RB"}
# Ions that Amber99SB itself has keep its figures; these are added from OpenMM's amber14/tip3p.xml.
ADDED_IONS = "F BR IOD CA ZN MN FE FE2 CU NI CO CD HG SR BA".split()


@dataclass(frozen=True)
class Residue:
    """A residue as it will be written: folder, template name, atoms as (name, type class, element, type), bonds."""

    folder: str
    name: str
    atoms: list[tuple[str, str, str, str]]
    bonds: list[tuple[int, int]]

    @property
    def graph(self) -> Graph:
        return Graph([Atom(name, class_, element) for name, class_, element, _ in self.atoms], self.bonds)


class Parameters:
    """Residues, atom types, nonbonded and bonded figures of one OpenMM force-field file."""

    def __init__(self, folder: Path, file: str) -> None:
        self.file = file
        root = ET.parse(folder / file).getroot()
        types = [(t.get("name", ""), t.get("class", ""), t.get("element", "")) for t in root.iter("Type")]
        self.types = {name: (short_class(class_), element) for name, class_, element in types}
        self.residues = {r.get("name", ""): r for r in root.iter("Residue")}
        self.terms = TermFigures(root)
        self.figures = {a.get("type", ""): a for a in root.find("NonbondedForce") or () if a.tag == "Atom"}

    def atoms(self, name: str) -> list[tuple[str, str, str, str]]:
        atoms = [(a.get("name", ""), a.get("type", "")) for a in self.residues[name].iter("Atom")]
        return [(atom, *self.types[type_], type_) for atom, type_ in atoms]

    def bonds(self, name: str) -> list[tuple[int, int]]:
        names = [atom[0] for atom in self.atoms(name)]
        bonds = []
        for bond in self.residues[name].iter("Bond"):
            if bond.get("from") is not None:
                i, j = int(bond.get("from", "")), int(bond.get("to", ""))
            else:
                i, j = names.index(bond.get("atomName1", "")), names.index(bond.get("atomName2", ""))
            bonds.append((min(i, j), max(i, j)))
        return sorted(bonds)

    def charge(self, name: str, atom: str, type_: str) -> float:
        """The charge of the residue's own atom line where it has one, else of the atom type."""
        own = next(a for a in self.residues[name].iter("Atom") if a.get("name") == atom).get("charge")
        return float(own if own is not None else self.figures[type_].get("charge", ""))

    def lennard_jones(self, type_: str) -> tuple[float, float]:
        """R* (A) and epsilon (kcal/mol); both 0 for an atom without Lennard-Jones interaction."""
        sigma, epsilon = (float(self.figures[type_].get(key, "")) for key in ("sigma", "epsilon"))
        r_star = sigma * ANGSTROM_PER_NM * 2 ** (1 / 6) / 2 if epsilon else 0.0
        return r_star, epsilon * KCAL_PER_KJ


def ion(name: str, parameters: Parameters) -> Residue:
    """An ion as PELE calls it: template NAZ, atom NA."""
    ((_, class_, element, type_),) = parameters.atoms(name)
    return Residue("HeteroAtoms", f"{IONS.get(name, name).upper()}Z", [(element.upper(), class_, element, type_)], [])


def renamed(atoms: list[tuple[str, str, str, str]], names: dict[str, str]) -> list[tuple[str, str, str, str]]:
    return [(names.get(atom[0], atom[0]), *atom[1:]) for atom in atoms]


def place(name: str) -> tuple[str, str, dict[str, str]]:
    """Folder, template name in PELE's manner, and atom names to change, of a polymer residue of Amber99SB."""
    if name[0] in "DR" and len(name) in (2, 3) and name[1] in "ACGTU" and name[2:] in NUCLEIC_ENDS:
        base = name[:2] if name[0] == "D" else name[1]
        return f"{name[0]}NA", base + NUCLEIC_ENDS[name[2:]], NUCLEIC_ATOMS
    if len(name) == 4 and name[0] in "NC":
        return "Protein", name[1:] + {"N": "B", "C": "E"}[name[0]], PROTEIN_ATOMS.get(name, {})
    return "Protein", name, PROTEIN_ATOMS.get(name, {})


def residues(amber: Parameters, ions: Parameters) -> Iterator[tuple[Residue, Parameters, str]]:
    """Every residue to write, with where its figures are and its name there."""
    for name in amber.residues:
        atoms = amber.atoms(name)
        if len(atoms) == 1:
            yield ion(name, amber), amber, name
        else:
            folder, template, names = place(name)
            yield Residue(folder, template, renamed(atoms, names), amber.bonds(name)), amber, name
    for name in ADDED_IONS:
        yield ion(name, ions), ions, name
    water = Residue("HeteroAtoms", "HOHZ", renamed(ions.atoms("HOH"), WATER_ATOMS), ions.bonds("HOH"))
    yield water, ions, "HOH"


def shortest(value: float, least: int, within: float = 1e-11) -> str:
    """A figure with as few decimals, from `least` on, as give it back to a relative 1e-11, or as said."""
    for decimals in range(least, 19):
        text = f"{value:.{decimals}f}"
        if abs(float(text) - value) <= within * abs(value):
            return text
    raise ValueError(f"{value} cannot be written")


def padded(name: str, element: str) -> str:
    """The name in its four PDB columns, underscores for blanks."""
    start = "" if len(element) == 2 or len(name) == 4 or name[0].isdigit() else "_"
    return (start + name).ljust(4, "_")


def template_text(residue: Residue, parameters: Parameters, original: str) -> str:
    """The IMPACT template of a residue."""
    terms = {section: term_lines(rows) for section, rows in residue.graph.terms(parameters.terms).items()}
    n_angles, n_torsions = len(terms["THET"]), len(terms["PHI"]) + len(terms["IPHI"])
    lines = [
        f"* {residue.name}: parameters of {original} in OpenMM's {parameters.file} (data/make_amber99sb.py)",
        "* NBON: R* = Rmin/2 (A), epsilon (kcal/mol), charge (e); SGB figures and Z-matrix are zero",
        "* THET, PHI, IPHI: rows with K = 0 are left out; impropers by index, as OpenMM has them",
        f"{residue.name:<5}{len(residue.atoms):>5}{len(residue.bonds):>6}{n_angles:>6}{n_torsions:>6}     0",
    ]
    nonbonded = []
    for i, (name, class_, element, type_) in enumerate(residue.atoms):
        parent = next((j + 1 for j, k in residue.bonds if k == i), 0)
        branch = "M" if name in BACKBONE else "S"
        lines.append(f"{i + 1:>5} {parent:>5} {branch}   {class_:<4} {padded(name, element)}     0   0.0   0.0   0.0")
        r_star, epsilon = parameters.lennard_jones(type_)
        xml_name = [atom[0] for atom in parameters.atoms(original)][i]
        charge = parameters.charge(original, xml_name, type_)
        figures = f"{shortest(r_star, 4)} {shortest(epsilon, 4)} {shortest(charge, 4)}"
        nonbonded.append(f"{i + 1:>5} {figures} 0.0 0.0 0.0 0.0")
    sections = [line for section, rows in terms.items() for line in (section, *rows)]
    return "\n".join([*lines, "NBON", *nonbonded, *sections, "END"]) + "\n"


def term_lines(terms: list[Term]) -> list[str]:
    """The rows of a section, with all digits of their figures."""
    return [" ".join([*(f"{i + 1:>3}" for i in atoms), figures_text(row)]) for atoms, rows in terms for row in rows]


def figures_text(row: Sequence[float]) -> str:
    """K and what follows it, with all digits."""
    return " ".join(shortest(figure, 1, 1e-15) for figure in row)


def rule_rows(residue: Residue, template: Template) -> list[tuple[float, float]]:
    """Radius and scale of each atom by the element rule, in a chain: open ends count the bond they wait for."""
    elements = [atom[2] for atom in residue.atoms]
    waiting = [i for i in (template.head, template.tail, template.thiol) if i >= 0]
    beyond = [(i, len(elements) + k) for k, i in enumerate(waiting)]
    bonds = np.array([*template.bonds.tolist(), *beyond], np.int32).reshape(-1, 2)
    radii, scales = element_rule([*elements, *["C"] * len(waiting)], bonds)
    return [(radii[i], scales[i]) for i in range(len(elements))]


def main(folder: Path, target: Path = HERE) -> None:
    """Write templates and tables below `target`."""
    amber, ions = Parameters(folder, "amber99sb.xml"), Parameters(folder, "amber14/tip3p.xml")
    gbsa = ET.parse(folder / "amber99_obc.xml").getroot().iter("Atom")
    obc = {a.get("type"): (float(a.get("radius", "")) * ANGSTROM_PER_NM, float(a.get("scale", ""))) for a in gbsa}
    written: dict[str, list[tuple[Template, Graph]]] = {"Protein": [], "DNA": [], "RNA": [], "HeteroAtoms": []}
    header = "# template atom type radius(A) scale"
    tables = {"amber99": [header], "pele": [header]}
    for residue, parameters, original in residues(amber, ions):
        path = target / "amber99sb" / residue.folder / residue.name.lower()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(template_text(residue, parameters, original))
        template = read_template(path)
        written[residue.folder].append((template, residue.graph))
        rule = rule_rows(residue, template)
        for (name, class_, _, type_), by_rule in zip(residue.atoms, rule, strict=True):
            for table, (radius, scale) in (("amber99", obc.get(type_, by_rule)), ("pele", by_rule)):
                tables[table].append(f"{residue.name:<5} {name:<4} {class_:<4} {radius:.6g} {scale:.4g}")
    nucleotides = written["DNA"] + written["RNA"]
    for file, name, ends, residues_ in (
        ("Protein/inter_residue_bonds", "PEPTIDE_BOND", ("tail", "head"), written["Protein"]),
        ("Protein/disulphide_bonds", "DISULPHIDE_BOND", ("thiol", "thiol"), written["Protein"]),
        ("DNA/inter_residue_bonds", "PHOSPHODIESTER_BOND", ("tail", "head"), nucleotides),
    ):
        (target / "amber99sb" / file).write_text(links_text(name, residues_, ends, amber.terms, figures_text))
    (target / "obc").mkdir(exist_ok=True)
    for table, rows in tables.items():
        (target / "obc" / f"{table}.txt").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        spec = importlib.util.find_spec("openmm.app")
        if spec is None or spec.origin is None:
            sys.exit("OpenMM is not installed; give the folder of its force-field files")
        main(Path(spec.origin).parent / "data")
