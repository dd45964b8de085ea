"""Advice for a path: which law, how many streams, pacing, buffers; ``lfn advise``."""

from lfnlab.advise.choices import Choice, Offer, here, named, of_host
from lfnlab.advise.path import MOST_STREAMS, Bound, Measured, Path, bytes_of, check_flows, measured
from lfnlab.advise.search import Advice, Search
from lfnlab.advise.text import lines, ranged, ranged_json, to_json

__all__ = [
    "MOST_STREAMS",
    "Advice",
    "Bound",
    "Choice",
    "Measured",
    "Offer",
    "Path",
    "Search",
    "bytes_of",
    "check_flows",
    "here",
    "lines",
    "measured",
    "named",
    "of_host",
    "ranged",
    "ranged_json",
    "to_json",
]
