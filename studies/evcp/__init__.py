"""EVCP: what its paper leaves open, and its scenarios under VCP, EVCP and XCP."""
