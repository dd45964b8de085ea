"""Laws of congestion control: the registry, prototypes in Python, their way to C."""
