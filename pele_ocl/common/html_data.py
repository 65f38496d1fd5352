"""Data within a page: JSON that ends no script, whatever texts it has."""

from __future__ import annotations

import json

# Characters that mean something to HTML, `<!--<script>` among them, or that end a line of JavaScript.
_ESCAPED = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


def data_for_page(data: object) -> str:
    """Write data as JSON for a script element of a page."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).translate(_ESCAPED)
