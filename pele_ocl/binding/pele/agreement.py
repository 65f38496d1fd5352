"""Agreement of two columns of energies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...atoms import Floats


@dataclass(frozen=True)
class Agreement:
    """Agreement of the poses that both have.

    n : poses; correlation : Pearson's, NaN where one column is constant
    offset : mean of ours less theirs; sd : of the differences about it; both kcal/mol
    """

    n: int
    correlation: float
    offset: float
    sd: float

    @classmethod
    def of(cls, theirs: Floats, ours: Floats) -> Agreement:
        """Compare columns (m,), NaN left out."""
        good = np.isfinite(theirs) & np.isfinite(ours)
        a, b = theirs[good], ours[good]
        if not len(a):
            return cls(0, np.nan, np.nan, np.nan)
        spread = a.std() * b.std()
        correlation = float(((a - a.mean()) * (b - b.mean())).mean() / spread) if spread > 0 else np.nan
        return cls(len(a), correlation, float((b - a).mean()), float((b - a).std()))

    @property
    def text(self) -> str:
        """`correlation 0.998, offset +0.004`."""
        return f"correlation {self.correlation:.4f}, offset {self.offset:+.4g}"
