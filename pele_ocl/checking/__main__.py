"""Process that checks one kernel: its request comes as JSON, its results go out as JSON."""

from __future__ import annotations

import json
import signal
import sys

from ..common.errors import PeleError
from ..opencl import get_device
from .check import DONE, step_by_step

if __name__ == "__main__":
    try:
        device = get_device(int(sys.argv[1]) if sys.argv[1:] else None)
        request = json.load(sys.stdin)
        is_limited = not (request["is_timed"] or request["is_simulated"])
        for result in step_by_step(request, device):
            print(json.dumps(result.as_dict()), flush=True)
            if is_limited:  # a size that computes longer ends this process, by SIGPROF
                signal.setitimer(signal.ITIMER_PROF, request["most_seconds"])
    except PeleError as error:
        print(json.dumps({"error": str(error)}))
    print(DONE, flush=True)
