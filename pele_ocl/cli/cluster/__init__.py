"""Commands whose work other processes do: options, the way to them and back."""

from __future__ import annotations

from .calls import Call
from .options import ClusterOptions, asked_of, cluster_options
from .sharing import SharedWork, shared_out

__all__ = ["Call", "ClusterOptions", "SharedWork", "asked_of", "cluster_options", "shared_out"]
