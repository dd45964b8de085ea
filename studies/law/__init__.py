"""A search for a law that does not break, and its trial on held-out paths: ``docs/ebb.md``."""
