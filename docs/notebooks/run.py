"""Run the notebooks of this folder and keep their outputs: python docs/notebooks/run.py [NAME ...]

They run in a folder with alanine dipeptide, dipeptide.pdb, and the complex of make_complex.py. Needs nbclient, and
torch for two of them. A key of the code is kept with the outputs, so that a test can check that they belong to it.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
KEPT = ("stream", "display_data", "execute_result")


def key_of(notebook: dict[str, Any]) -> str:
    """Return the key of the code of a notebook."""
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return hashlib.sha256("\n".join(code).encode()).hexdigest()[:16]


def main(names: list[str]) -> None:
    """Run the named notebooks, or all."""
    import nbformat
    from nbclient import NotebookClient

    sys.path.insert(0, str(HERE.parents[1] / "tests" / "benchmarks"))
    from dipeptide import pdb_of_dipeptide

    for name in names or sorted(path.stem for path in HERE.glob("*.ipynb")):
        path = HERE / f"{name}.ipynb"
        notebook = json.loads(path.read_text())
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "dipeptide.pdb").write_text(pdb_of_dipeptide())
            subprocess.run([sys.executable, HERE / "make_complex.py", folder], check=True)
            resources = {"metadata": {"path": folder}}
            ran = NotebookClient(nbformat.reads(path.read_text(), 4), timeout=1800, resources=resources).execute()
        for cell, own in zip(notebook["cells"], ran.cells, strict=True):
            if cell["cell_type"] == "code":
                cell["outputs"] = merged([kept(output) for output in own.outputs if output.output_type in KEPT])
                cell["execution_count"] = own.execution_count
        notebook["metadata"]["pele_ocl"] = {"code": key_of(notebook)}
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def kept(output: Any) -> dict[str, Any]:
    """Return an output as files have it: lines of texts, pictures without their descriptions."""
    found: dict[str, Any] = {name: value for name, value in dict(output).items() if name != "transient"}
    if "text" in found:
        found["text"] = found["text"].splitlines(keepends=True)
    if "image/png" in found.get("data", {}):
        found["data"] = {"image/png": found["data"]["image/png"]}
    return found


def merged(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join texts of one stream that follow each other."""
    found: list[dict[str, Any]] = []
    for output in outputs:
        if found and "name" in output and output["name"] == found[-1].get("name"):
            found[-1]["text"] += output["text"]
        else:
            found.append(output)
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
