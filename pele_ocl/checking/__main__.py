"""Process that checks one kernel. It reads a JSON request from stdin and writes JSON lines to a file."""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO

from ..common.errors import PeleError
from ..opencl import get_device
from .check import DONE, limit_computing, step_by_step


def _answer(request: dict[str, Any], answers: TextIO) -> None:
    """Write a line for each result, and then DONE."""
    try:
        device = get_device(int(sys.argv[1]) if sys.argv[1:] else None)
        is_limited = not (request["is_timed"] or request["is_simulated"])
        for result in step_by_step(request, device):
            print(json.dumps(result.to_json()), file=answers, flush=True)
            if is_limited:  # a size that takes longer ends this process
                limit_computing(request["most_seconds"])
    except PeleError as error:
        print(json.dumps({"error": str(error)}), file=answers)
    print(DONE, file=answers, flush=True)


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    with open(asked["answers"], "w", encoding="utf-8") as stream:
        _answer(asked, stream)
