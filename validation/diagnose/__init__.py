"""Transfers with known causes, and what ``lfnlab.diagnose`` makes of them.

$ python -m validation.diagnose draw --seed 1 --count 20 [--where simulator|linux|emulator]
$ python -m validation.diagnose score --seed 1 --count 200
"""

from .transfers import Path, Transfer, draw

__all__ = ["Path", "Transfer", "draw"]
