"""Write the imports of pele_ocl/__init__.py that checkers and editors read, from its tables of public names.

tests/test_cli_robust.py holds them against each other.
"""

from __future__ import annotations

import re
from pathlib import Path

import pele_ocl

PACKAGE = Path(__file__).resolve().parents[2] / "pele_ocl" / "__init__.py"


def filled() -> str:
    """Return the text of pele_ocl/__init__.py with an import of each public name, in the order that ruff wants."""
    homes = {**pele_ocl._MODULES, **{name: name for name in pele_ocl._CALLED}}
    kind = {name: (not name.isupper(), name[0].islower()) for name in homes}  # constants first, then classes
    ordered = sorted(homes.items(), key=lambda item: (item[1], kind[item[0]], item[0].lower()))
    imports = "".join(f"    from .{home} import {name} as {name}\n" for name, home in ordered)
    between = re.compile(r"(?<=^if TYPE_CHECKING:).*?$.*?(?=^    __version__)", re.DOTALL | re.MULTILINE)
    return between.sub(lambda _: f"  # made from the tables below by `make docs`\n{imports}\n", PACKAGE.read_text())


if __name__ == "__main__":
    PACKAGE.write_text(filled())
