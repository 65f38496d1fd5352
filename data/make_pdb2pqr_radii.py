"""Write data/pdb2pqr_radii.csv: radii of the force fields amber, charmm and parse of PDB2PQR, by names of atoms.

python data/make_pdb2pqr_radii.py     needs pdb2pqr, whose tables and rules for names are used (version 3.5.2)
"""

from __future__ import annotations

from pathlib import Path

from pdb2pqr import forcefield
from pdb2pqr import io as pdb2pqr_io

AMINO = (
    "ALA ARG ASN ASP ASH CYS CYX CYM GLN GLU GLH GLY HID HIE HIP ILE LEU LYS LYN MET PHE PRO SER THR TRP TYR TYM VAL"
).split()
BASES = "DA DC DG DT RA RC RG RU".split()
RESIDUES = [
    *(end + name for name in AMINO for end in ("", "N", "C")),
    *(name + end for name in BASES for end in ("", "5", "3", "N")),
    "ACE", "NME", "NHE", "WAT",
]  # fmt: skip
MORE = ("H1", "H2", "H3", "OXT", "HO5'", "HO3'", "H5T", "H3T", "HD1", "HD2", "HE2", "HG", "HH")  # of some states alone


def main() -> None:
    """Write the file."""
    definition = pdb2pqr_io.get_definitions()
    atoms = sorted({*MORE, *(atom for residue in definition.map.values() for atom in residue.map)})
    with open(Path(__file__).with_name("pdb2pqr_radii.csv"), "w", encoding="utf-8") as file:
        file.write(
            "# Radii of PDB2PQR's force fields (AMBER.DAT, CHARMM.DAT, PARSE.DAT; BSD licence): data/README.md\n"
        )
        file.write("set,residue,atom,radius\n")
        for name in ("amber", "charmm", "parse"):
            field = forcefield.Forcefield(name, definition, None, None)
            for residue in RESIDUES:
                for atom in atoms:
                    _, radius = field.get_params(residue, atom)
                    if radius is not None:
                        file.write(f"{name},{residue},{atom},{radius:g}\n")


if __name__ == "__main__":
    main()
