"""Figures and reports of results and of the theory."""
