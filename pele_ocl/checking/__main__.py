"""Process that checks one kernel: its request comes as JSON, its result goes out as JSON."""

from __future__ import annotations

import json
import sys

from ..errors import PeleError
from ..opencl import get_device
from .check import in_this_process

if __name__ == "__main__":
    try:
        answer = in_this_process(json.load(sys.stdin), get_device(int(sys.argv[1]) if sys.argv[1:] else None)).as_dict()
    except PeleError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))
