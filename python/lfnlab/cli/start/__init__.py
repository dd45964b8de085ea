"""Commented starts, which ``lfn new`` writes."""
