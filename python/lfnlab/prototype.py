"""For compiled modules of before the rooms, until they are built again."""

from lfnlab.control_laws.prototype import Law, describe, find, hint

__all__ = ["Law", "describe", "find", "hint"]
