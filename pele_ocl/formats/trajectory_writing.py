"""Trajectories that simulations write: AMBER's NetCDF, DCD, GROMACS' XTC, MDTraj's HDF5, extended XYZ."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ..atoms import Atoms, Floats
from ..common.extras import extra
from .conformation_files import INTERVAL, ConformationFormat, Content, Hdf5Format, NetcdfFormat

_AKMA = 0.04888821290839616  # ps of CHARMM's unit of time
_NANOMETER = 0.1  # of an A


class DcdFormat(ConformationFormat):
    """Frames of float32 coordinates in A, as CHARMM writes them without a cell; without names."""

    has_gaps = True

    def __init__(self, content: Content) -> None:
        self._n_atoms = len(content.atoms)
        self._interval = float(str(content.attributes.get(INTERVAL, 1.0)))
        self._frame_bytes = 3 * (4 * self._n_atoms + 8)

    def head(self) -> bytes:
        numbers = np.zeros(20, "<i4")
        numbers[[1, 2, 19]] = 0, 1, 24  # first step, steps between frames, CHARMM's version
        numbers[9:10] = np.array([self._interval / _AKMA], "<f4").view("<i4")
        title = np.array([1], "<i4").tobytes() + b"written by pele-ocl".ljust(80)
        return b"".join(map(_record, (b"CORD" + numbers.tobytes(), title, np.array([self._n_atoms], "<i4").tobytes())))

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        values = np.full((self._n_atoms, 3), np.nan) if positions is None else positions
        return b"".join(_record(axis.astype("<f4").tobytes()) for axis in values.T)

    def grown(self, stream: io.FileIO, size: int) -> None:
        n = np.array((size - len(self.head())) // self._frame_bytes, "<i4").tobytes()
        for place in (8, 20):  # frames, and steps
            stream.seek(place)
            stream.write(n)


def _record(data: bytes) -> bytes:
    """Write a record of Fortran's, between marks of its length."""
    mark = np.array(len(data), "<i4").tobytes()
    return mark + data + mark


class XtcFormat(ConformationFormat):
    """Frames of coordinates rounded to 0.01 A, through MDTraj; without names."""

    def __init__(self, content: Content) -> None:
        self._interval = float(str(content.attributes.get(INTERVAL, 1.0)))
        self._writer = extra("mdtraj.formats", "an .xtc file").XTCTrajectoryFile

    def head(self) -> bytes:
        return b""

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        assert positions is not None
        values = (_NANOMETER * positions).astype(np.float32)[None]
        time, step = np.array([(number - 1) * self._interval], np.float32), np.array([number], np.int32)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "frame.xtc"  # frames stand one after the other, with nothing between them
            with self._writer(str(path), "w") as file:
                file.write(values, time=time, step=step, box=np.zeros((1, 3, 3), np.float32))
            return path.read_bytes()


class XyzFormat(ConformationFormat):
    """Extended XYZ, as ASE reads it: elements and positions as text, and the time of each frame in ps."""

    def __init__(self, content: Content) -> None:
        self._elements = [f"{element:2s}" for element in content.labels.elements.tolist()]
        self._interval = float(str(content.attributes.get(INTERVAL, 1.0)))

    def head(self) -> bytes:
        return b""

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        assert positions is not None
        comment = f'Properties=species:S:1:pos:R:3 time={(number - 1) * self._interval:.6g} pbc="F F F"'
        rows = zip(self._elements, positions.tolist(), strict=True)
        lines = (f"{element} {x:.5f} {y:.5f} {z:.5f}\n" for element, (x, y, z) in rows)
        return "".join([f"{len(self._elements)}\n{comment}\n", *lines]).encode()


class MdtrajFormat(Hdf5Format):
    """HDF5 by MDTraj's convention (Pande, version 1.1): nm, ps, and the topology as JSON; frames to come are NaN."""

    dataset = "coordinates"
    per_angstrom = _NANOMETER

    @property
    def unit(self) -> dict[str, str]:
        return {"units": "nanometers"}

    def write_rest(self, file: Any, content: Content) -> None:
        head = {"conventions": "Pande", "conventionVersion": "1.1", "program": "pele-ocl", "programVersion": "1"}
        for name, text in {**head, "application": "pele-ocl simulate"}.items():
            file.attrs[name] = np.bytes_(text)
        times = float(str(content.attributes.get(INTERVAL, 1.0))) * np.arange(content.n, dtype=np.float32)
        file.create_dataset("time", data=times).attrs["units"] = np.bytes_("picoseconds")
        if content.atoms.labels is not None:
            file.create_dataset("topology", data=np.array([json.dumps(_topology(content.atoms)).encode()]))


def _topology(atoms: Atoms) -> dict[str, Any]:
    """Describe chains, residues, atoms and bonds as MDTraj's topologies have them in JSON."""
    labels = atoms.labels
    assert labels is not None
    chains: list[dict[str, Any]] = []
    residues: dict[int, dict[str, Any]] = {}
    columns = (labels.residue_index, labels.chains, labels.residue_names, labels.residue_numbers)
    rows = zip(*(column.tolist() for column in columns), labels.names.tolist(), labels.elements.tolist(), strict=True)
    for k, (place, chain, residue, number, name, element) in enumerate(rows):
        if place not in residues:
            if not chains or chains[-1]["chain_id"] != chain:
                chains.append({"index": len(chains), "chain_id": chain, "residues": []})
            residues[place] = {
                "index": len(residues), "name": residue, "resSeq": number, "segmentID": "", "atoms": [],
            }  # fmt: skip
            chains[-1]["residues"].append(residues[place])
        residues[place]["atoms"].append({"index": k, "name": name, "element": element})
    return {"chains": chains, "bonds": np.unique(np.sort(atoms.bond_pairs, axis=1), axis=0).tolist()}


TRAJECTORY_FORMATS: dict[str, type[ConformationFormat]] = {
    "nc": NetcdfFormat, "dcd": DcdFormat, "xtc": XtcFormat, "h5": MdtrajFormat, "xyz": XyzFormat,
}  # fmt: skip
