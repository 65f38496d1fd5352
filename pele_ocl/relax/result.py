"""Result of `relax`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..atoms import Atoms, Floats
from ..contract import Finding
from ..minimize import MinimizeResult
from .violations import Violation


@dataclass(frozen=True, eq=False)
class Round:
    """A minimisation. freed : residues without restraints, by name; after : violations that it left"""

    result: MinimizeResult = field(repr=False)
    freed: tuple[str, ...]
    after: Sequence[Violation]


@dataclass(frozen=True, eq=False, kw_only=True)
class RelaxResult:
    """A model that was relaxed.

    atoms : all of them, where they are now; b_factors : (n, 2) occupancies and B-factors of the file, None without any
    before, after : violations; n_added : atoms that the file lacked
    rounds : at least one
    rms_displacement : of the heavy atoms that the file has, without superposition, A
    seconds : by step: "preparation", "minimisation", "violations" and "total"
    notes : sentences about what was chosen, taken out, replaced or built of what the file has
    findings : about the atoms that the file has, as it has them, and about the energy at the end
    """

    name: str
    atoms: Atoms
    b_factors: Floats | None = field(repr=False)
    before: Sequence[Violation] = field(repr=False)
    rounds: Sequence[Round] = field(repr=False)
    n_added: int
    rms_displacement: float
    seconds: Mapping[str, float]
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def after(self) -> Sequence[Violation]:
        """Violations that are left."""
        return self.rounds[-1].after

    @property
    def is_clean(self) -> bool:
        """Tell if AlphaFold's rule counts no violation any more."""
        return not any(violation.counts for violation in self.after)

    @property
    def is_worse(self) -> bool:
        """Tell if there are more violations that count than before, or more clashes."""
        before, after = counts(self.before), counts(self.after)
        n_before, n_after = (sum(of.counts for of in found) for found in (self.before, self.after))
        return n_after > n_before or after.get("clash", 0) > before.get("clash", 0)

    @property
    def iterations(self) -> int:
        """Iterations of all rounds."""
        return sum(round_.result.iterations for round_ in self.rounds)

    @property
    def converged(self) -> bool:
        """Tell if the last round reached its tolerance, no limit."""
        return self.rounds[-1].result.converged


def counts(violations: Sequence[Violation]) -> dict[str, int]:
    """Count the violations of each kind."""
    return dict(Counter(violation.kind for violation in violations))
