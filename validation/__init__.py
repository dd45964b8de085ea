"""Compares the laboratory with theory, with real Linux, with ns-2 and with ns-3.

Run as ``python -m validation linux|ns2|ns3|ours|report`` from the repository's root.
"""
