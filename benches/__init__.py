"""CPU time a packet beside the other simulators, and instructions a packet on record."""
