"""Experiments: what is run, in what order, where, and for which values."""
