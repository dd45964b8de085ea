"""Reproductions of papers: claims, what was left for later, verdicts."""
