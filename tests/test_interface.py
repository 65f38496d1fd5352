"""Structs and constants that host and kernels share have one definition, and mean the same on both sides."""

from __future__ import annotations

import numpy as np
import pytest

from pele_ocl.energy.result import PASS_TERMS
from pele_ocl.opencl import Queue, building, interface

STRUCTS = [value for value in vars(interface).values() if isinstance(value, interface.Struct)]

MEMBERS = """
#include "common/real.clh"
#include "shared/{header}"
kernel void members(const {struct} s, global double *values) {{
    {copies}
}}
"""


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.name)
def test_a_struct_packed_by_name_arrives_by_name(struct, device, precision, monkeypatch):
    (header,) = (name for name, text in interface.HEADERS.items() if struct.in_c() in text)
    sizes = {name: getattr(member, "size", 0) for name, member in struct.members.items()}
    places = [f"{name}[{k}]" if size else name for name, size in sizes.items() for k in range(size or 1)]
    copies = "\n".join(f"values[{k}] = s.{place};" for k, place in enumerate(places))
    text = MEMBERS.format(header=header, struct=struct.name, copies=copies).replace("double", "real")
    source = building.source_of
    monkeypatch.setattr(building, "source_of", lambda file: text if file == "members.cl" else source(file))
    values = np.arange(3, 3 + 2 * len(places), 2)
    parts = dict(zip(sizes, np.split(values, np.cumsum([size or 1 for size in sizes.values()])[:-1]), strict=True))
    told = {name: part if sizes[name] else part[0] for name, part in parts.items()}
    given = struct.pack(precision, **dict(reversed(told.items())))
    queue = Queue(device, precision)
    kernel = queue.kernel("members.cl", "members", STRUCT=STRUCTS.index(struct))
    found = queue.empty(len(values))
    queue.launch(kernel, (1,), (1,), dict(s=given, values=found))
    assert queue.download(found, len(values)).tolist() == values.tolist()


def test_every_struct_has_a_header():
    assert set(STRUCTS) == set(interface.STRUCTS.values())


def test_members_are_all_given_and_no_others():
    values = {member: 0 for member in interface.POTENTIAL_LAW.members}
    with pytest.raises(TypeError, match="Law and its values differ in kapa, kappa"):
        interface.POTENTIAL_LAW.pack("float32", **{"kapa" if name == "kappa" else name: 0 for name in values})


def test_there_are_as_many_terms_as_names_for_them():
    assert len(PASS_TERMS) == interface.N_TERMS


def test_constants_stand_in_one_place():
    """A macro of shared/ is defined by no kernel file again."""
    folder = building.shipped("cl")
    shared = [line for text in interface.HEADERS.values() for line in text.splitlines()]
    names = {line.split()[1] for line in shared if line.startswith("#define")}
    assert {"ONE_FOUR", "KEEP_TOTALS", "N_TERMS", "FIRSTS", "READY_TERMS", "PAIR_SUMS"} <= names
    for path in folder.rglob("*.cl*"):
        defined = {line.split()[1] for line in path.read_text().splitlines() if line.startswith("#define")}
        assert not defined & names, path
