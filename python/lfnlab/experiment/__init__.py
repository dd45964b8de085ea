"""Experiments: their runs, with order, place and values of keys."""
