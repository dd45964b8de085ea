"""A scenario on the TCP of Linux: in real time, and in virtual time."""
