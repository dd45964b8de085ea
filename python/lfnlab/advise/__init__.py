"""Advice for a path: which law, how many streams, pacing, buffers; ``lfn advise``."""

from lfnlab.advise.choices import Choice, Offer, here, named, of_host
from lfnlab.advise.marks import Marking, check_kind, marking, marking_json, marking_lines
from lfnlab.advise.path import MOST_STREAMS, Path, bytes_of, check_flows
from lfnlab.advise.remedy import Remedies, Remedy, measured, remedies
from lfnlab.advise.search import Advice, Search
from lfnlab.advise.text import lines, to_json

__all__ = [
    "MOST_STREAMS",
    "Advice",
    "Choice",
    "Marking",
    "Offer",
    "Path",
    "Remedies",
    "Remedy",
    "Search",
    "bytes_of",
    "check_flows",
    "check_kind",
    "here",
    "lines",
    "marking",
    "marking_json",
    "marking_lines",
    "measured",
    "named",
    "of_host",
    "remedies",
    "to_json",
]
