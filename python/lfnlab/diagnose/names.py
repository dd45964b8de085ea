"""The causes that a diagnosis names."""

CAUSES = (
    "receive-window",
    "send-buffer",
    "random-loss",
    "queue-overflow",
    "policer",
    "pacing",
    "application",
    "slow-start",
    "ack-path",
    "path-change",
)

UNDECIDED = "undecided"
"""The evidence does not suffice."""
