"""Suites of experiments: the common TCP evaluation suite, and the test cases of BBR."""
