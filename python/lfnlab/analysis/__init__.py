"""Analyses of results: metrics of stored runs, summaries, sawtooths, what to know about them."""
