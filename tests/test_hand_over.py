"""The last of several groups of a launch sees all that the others wrote: the protocol of cl/common/hand_over.clh."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pele_ocl.opencl import building
from pele_ocl.opencl.run import Run
from pele_ocl.paths import shipped

ITEMS, GROUPS, LAUNCHES = 8, 200, 50

# Each group leaves a number of each work-item; the last adds them up, in pieces that other work-items wrote.
PROBE = """
#include "common/real.clh"
#include "common/hand_over.clh"
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void probe(const int turn, global int *left, global int *arrivals, global int *sums) {
    local int is_last;
    const int item = get_local_id(0), group = get_group_id(0), n_groups = get_num_groups(0);
    left[group * ITEMS + item] = turn + group * ITEMS + item;
    PUBLISH();
    if (item == 0) is_last = arrives_last(arrivals, n_groups);
    TAKE_OVER();
    if (!is_last) return;
    int sum = 0;
    for (int k = 0; k < n_groups; ++k) sum += left[k * ITEMS + (item + 1) % ITEMS];
    sums[turn * ITEMS + item] += sum;
}
"""


def test_the_last_group_sees_what_all_wrote_and_resets_the_counter(device, monkeypatch):
    if not device.has_device_fence:
        pytest.skip("no fence over the device")
    source = building._source
    monkeypatch.setattr(building, "_source", lambda file: PROBE if file == "hand_over.cl" else source(file))
    run = Run(device, "float32")
    kernel = run.kernel("hand_over.cl", "probe", FUSED=1, ITEMS=ITEMS)
    left, arrivals, sums = (run.zeros(n, np.int32) for n in (ITEMS * GROUPS, 1, ITEMS * LAUNCHES))
    for turn in range(LAUNCHES):
        run.launch(kernel, (ITEMS * GROUPS,), (ITEMS,), np.int32(turn), left, arrivals, sums)
    numbers = np.arange(ITEMS * GROUPS).reshape(GROUPS, ITEMS).sum(axis=0)
    expected = np.roll(numbers, -1) + GROUPS * np.arange(LAUNCHES)[:, None]
    np.testing.assert_array_equal(run.download(sums, ITEMS * LAUNCHES, np.int32).reshape(LAUNCHES, ITEMS), expected)
    assert run.download(arrivals, 1, np.int32) == 0


@pytest.mark.parametrize("file", ["solvent/tiled.cl", "energy/collect.clh"])
def test_whoever_arrives_has_published_and_takes_over(file):
    steps = re.findall(r"\b(PUBLISH|arrives_last|TAKE_OVER)\b", (shipped("cl") / file).read_text())
    assert steps == ["PUBLISH", "arrives_last", "TAKE_OVER"]


def test_nobody_else_hands_over():
    users = {str(p.relative_to(shipped("cl"))) for p in shipped("cl").rglob("*.cl*") if "arrives_last" in p.read_text()}
    assert users == {"common/hand_over.clh", "solvent/tiled.cl", "energy/collect.clh"}
