"""Cost of a law in Python: Reno as a class against Reno as the header.

$ python -m benches.prototype

Both run the same flow on 1 Gbit/s x 40 ms; the difference in CPU time, over the ACKs that reached
the law, is the cost of a call. The least of three rounds.
"""

from __future__ import annotations

from lfnlab import Ack, Law, Loss, _core, dumbbell

PATH = dumbbell(rate="1Gbit/s", rtt="40ms", buffer="1bdp", duration="30s", sample="off")
ROUNDS = 3
calls = 0


class Reno(Law):
    """Reno, as laws/reno.h has it."""

    name = "reno-in-python"

    def on_ack(self, n: int, ack: Ack) -> None:
        self.cwnd += min(1 / self.cwnd, 1) * n

    def on_loss(self, loss: Loss) -> None:
        self.ssthresh = max(self.cwnd / 2, 2)


class Estimating(Reno):
    """The same with an estimator, which sees every ACK."""

    name = "estimating"

    def __init__(self) -> None:
        self.base_s = float("inf")

    def on_sample(self, ack: Ack) -> None:
        if ack.rtt_s is not None:
            self.base_s = min(self.base_s, ack.rtt_s)


class Counting(Reno):
    """The same, to count the calls."""

    name = "counting"

    def on_ack(self, n: int, ack: Ack) -> None:
        global calls
        calls += 1
        super().on_ack(n, ack)


def cpu_s(law: str | type[Law]) -> float:
    """CPU time of a run of one flow, in seconds."""
    (run,) = _core.run_many([_core.Scenario(PATH.flow(law).to_toml())], 1, None)
    assert run is not None
    return float(run.cpu_s)


def main() -> None:
    """Measure, and print a line for each."""
    cpu_s(Counting)
    header_s = min(cpu_s("reno") for _ in range(ROUNDS))
    print(f"header: {header_s:.3f} s of CPU for {calls:,} calls of on_ack")
    for law, says in ((Reno, "on_ack"), (Estimating, "on_ack and on_sample")):
        own_s = min(cpu_s(law) for _ in range(ROUNDS))
        more_ns = (own_s - header_s) / calls * 1e9
        print(f"{says} in Python: {own_s:.3f} s, {more_ns:,.0f} ns an ACK more")


if __name__ == "__main__":
    main()
