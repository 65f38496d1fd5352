"""Last of several groups of a launch sees all that the others wrote: the protocol of cl/common/hand_over.clh."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pele_ocl.common.installation import shipped
from pele_ocl.opencl import Queue, building

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
    source = building.source_of
    monkeypatch.setattr(building, "source_of", lambda file: PROBE if file == "hand_over.cl" else source(file))
    queue = Queue(device, "float32")
    kernel = queue.kernel("hand_over.cl", "probe", FUSED=1, ITEMS=ITEMS)
    left, arrivals, sums = (queue.zeros(n, np.int32) for n in (ITEMS * GROUPS, 1, ITEMS * LAUNCHES))
    for turn in range(LAUNCHES):
        queue.launch(kernel, (ITEMS * GROUPS,), (ITEMS,), dict(turn=turn, left=left, arrivals=arrivals, sums=sums))
    numbers = np.arange(ITEMS * GROUPS).reshape(GROUPS, ITEMS).sum(axis=0)
    expected = np.roll(numbers, -1) + GROUPS * np.arange(LAUNCHES)[:, None]
    np.testing.assert_array_equal(queue.download(sums, ITEMS * LAUNCHES, np.int32).reshape(LAUNCHES, ITEMS), expected)
    assert queue.download(arrivals, 1, np.int32) == 0


@pytest.mark.parametrize("text", ["common/hand_over.clh:group_arrives_last", "energy/squares/collect.clh:collect_last"])
def test_whoever_arrives_has_published_and_takes_over(text):
    file, function = text.split(":")
    body = (shipped("cl") / file).read_text().split(f" {function}(")[1]
    assert re.findall(r"\b(PUBLISH|arrives_last|TAKE_OVER)\b", body) == ["PUBLISH", "arrives_last", "TAKE_OVER"]


def test_nobody_else_hands_over():
    texts = {str(path.relative_to(shipped("cl"))): path.read_text() for path in shipped("cl").rglob("*.cl*")}
    users = {file for file, text in texts.items() if re.search(r"\barrives_last\b", text)}
    assert users == {"common/hand_over.clh", "energy/squares/collect.clh"}
    waiting = {file for file, text in texts.items() if "wait_for(" in text}
    steps = {"energy/blocks_joined.cl", "energy/squares/joined.cl", "minimize/iterate.cl", "solvent/joined.cl"}
    assert waiting == {"common/tickets.clh", *steps}


# Groups of three steps, each of which adds up what the one before left; the last one leaves the counters as they were.
STEPS = """
#include "common/real.clh"
#include "common/tickets.clh"
#define COUNTER(which) (counters + (which) * COUNTER_STEP)
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void probe(const int turn, const int per_step, global int *left, global int *sums, volatile global int *counters) {
    local int drawn;
    const int item = get_local_id(0);
    if (item == 0) drawn = draw_ticket(COUNTER(0));
    barrier(CLK_LOCAL_MEM_FENCE);
    const int step = drawn / per_step, group = drawn % per_step;
    int sum = 0;
    if (step > 0) {
        if (item == 0) wait_for(COUNTER(step), per_step);
        TAKE_OVER();
        for (int k = 0; k < per_step; ++k) sum += left[((step - 1) * per_step + k) * ITEMS + (item + 1) % ITEMS];
    }
    left[(step * per_step + group) * ITEMS + item] = step ? sum % 1009 + group : turn + group * ITEMS + item;
    PUBLISH();
    if (item) return;
    if (step < 2) count_done(COUNTER(step + 1), 1);
    else if (arrives_last(COUNTER(3), per_step)) for (int k = 0; k < 3; ++k) *COUNTER(k) = 0;
    if (step == 2 && group == 0) sums[turn] = sum;
}
"""


def test_steps_of_one_launch_wait_for_those_before(device, monkeypatch):
    if not device.has_device_fence:
        pytest.skip("no fence over the device")
    source = building.source_of
    monkeypatch.setattr(building, "source_of", lambda file: STEPS if file == "tickets.cl" else source(file))
    queue = Queue(device, "float32")
    kernel = queue.kernel("tickets.cl", "probe", FUSED=1, ITEMS=ITEMS)
    left, sums, counters = (
        queue.zeros(3 * ITEMS * GROUPS, np.int32),
        queue.zeros(LAUNCHES, np.int32),
        queue.zeros(4 * 32, np.int32),
    )
    expected = []
    for turn in range(LAUNCHES):
        arguments = dict(turn=turn, per_step=GROUPS, left=left, sums=sums, counters=counters)
        queue.launch(kernel, (3 * ITEMS * GROUPS,), (ITEMS,), arguments)
        group, item = np.arange(GROUPS)[:, None], np.arange(ITEMS)
        first = turn + group * ITEMS + item
        second = np.roll(first.sum(axis=0), -1) % 1009 + group
        expected.append(second.sum(axis=0)[1])
    np.testing.assert_array_equal(queue.download(sums, LAUNCHES, np.int32), expected)
    assert not queue.download(counters, 4 * 32, np.int32).any()
