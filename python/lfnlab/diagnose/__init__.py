"""Diagnosis of a measured transfer: the cause of each interval, the path, the law."""
