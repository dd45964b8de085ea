"""Scenarios as values: what they are made of, and how they are built and written."""
