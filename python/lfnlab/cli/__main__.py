"""``python -m lfnlab.cli`` is ``lfn``."""

from lfnlab.cli import main

main()
