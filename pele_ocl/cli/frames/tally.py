"""Names of the library's tally."""

from ...trajectories.tally import Rate as Rate
from ...trajectories.tally import Tally as Tally
from ...trajectories.tally import imaged as imaged
