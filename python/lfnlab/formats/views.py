"""The packets of a run in order, as a host of each flow sees them, or as a queue does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl

View = Literal["sender", "receiver", "arrival", "departure"]
"""Of a host of each flow, or of one of the two ends of queues."""

BEGIN_S = 1
"""Time in the file when simulated time is 0."""

ARRIVED, DROPPED, LEFT, RECEIVED = 0, 1, 2, 3
DATA, ACK, UDP, UDT_DATA, UDT_CONTROL = range(5)
RETRANSMISSION, CE, ECE, CWR, LAST, LEAVES, ECT1, AE = 1, 2, 4, 8, 16, 32, 64, 128
# By what a packet is known.
SAME = ("flow", "kind", "shake", "direction", "seq")
# Column `shake`: which packet of a handshake, if of any. In the table they are kinds of their own.
NO_SHAKE, SYN, SYN_ACK, THIRD = 0, 1, 2, 3
HANDSHAKE = 4


def with_shakes(packets: pl.DataFrame) -> pl.DataFrame:
    """The packets of handshakes as data and ACKs, with the column ``shake``."""
    kind = pl.col("kind")
    shake = pl.when(kind > HANDSHAKE).then(kind - HANDSHAKE).otherwise(NO_SHAKE).cast(pl.UInt8)
    answer = pl.when(kind == HANDSHAKE + SYN_ACK).then(ACK).otherwise(DATA)
    plain = pl.when(kind > HANDSHAKE).then(answer).otherwise(kind).cast(packets["kind"].dtype)
    return packets.with_columns(shake=shake, kind=plain)


def with_connections(packets: pl.DataFrame) -> pl.DataFrame:
    """``flow`` as a number of each connection; ``number`` is the flow's, ``turn`` counts its own.

    Short flows have the number of one that ended. A SYN, or a first segment that is sent for the
    first time, begins another if segments were sent before.
    """
    tcp = pl.col("kind") < UDP
    leaves = pl.col("flags") & LEAVES > 0
    syn = leaves & (pl.col("shake") == SYN)
    data = leaves & (pl.col("kind") == DATA) & (pl.col("shake") == NO_SHAKE)
    first = data & (pl.col("seq") == 0) & (pl.col("flags") & RETRANSMISSION == 0)
    has_sent = pl.when(syn).then(False).when(data).then(True).forward_fill().shift()
    another = (syn | first) & has_sent.over("flow", tcp).fill_null(False)
    turn = another.cast(pl.UInt64).cum_sum().over("flow", tcp)
    return packets.with_columns(number="flow", turn=turn).with_columns(
        flow=pl.col("turn") * 2**32 + pl.col("number")
    )


def of_queues(packets: pl.DataFrame, view: View) -> pl.DataFrame:
    """One row for each packet at one end of each queue, in order, with ``dropped``."""
    if view == "departure":
        left = packets.filter(pl.col("point") == LEFT)
        return left.with_columns(dropped=pl.lit(False)).sort("t_ps", maintain_order=True)
    arrived = packets.filter(pl.col("point") == ARRIVED).sort("t_ps", maintain_order=True)
    return _with_dropped(arrived, packets, ["link", *SAME])


def _with_dropped(
    arrived: pl.DataFrame, packets: pl.DataFrame, keys: Sequence[str]
) -> pl.DataFrame:
    """Marks those that were dropped: on arrival or later, the last of the number that had come."""
    arrived = arrived.with_row_index("arrival")
    drops = packets.filter(pl.col("point") == DROPPED).sort("t_ps", maintain_order=True)
    found = drops.join_asof(
        arrived.select("t_ps", "arrival", *keys),
        on="t_ps",
        by=list(keys),
        strategy="backward",
        check_sortedness=False,
    )
    dropped = pl.col("arrival").is_in(found["arrival"].drop_nulls().implode())
    return arrived.with_columns(dropped=dropped).drop("arrival")


def of_host(packets: pl.DataFrame, view: View) -> pl.DataFrame:
    """The packets that one host of each flow sends and receives, in order.

    ``dropped`` as for queues; ``clock`` and ``echo`` are the timestamps that a packet has (RFC
    7323): of the host that sent it, so they follow from what both hosts see.
    """
    packets = packets.sort("t_ps", maintain_order=True)
    leaves = (pl.col("point") == ARRIVED) & (pl.col("flags") & LEAVES > 0)
    sent = packets.filter(leaves).with_columns(clock=_clock())
    sent = _with_dropped(sent, packets, SAME).with_columns(sent=pl.lit(True))
    came = packets.filter(pl.col("point") == RECEIVED)
    came = _matched(came, sent.select("t_ps", "clock", "dropped", *SAME)).with_columns(
        clock=pl.col("clock").fill_null(_clock()), dropped=pl.lit(False), sent=pl.lit(False)
    )
    # Of one instant, a host first receives.
    both = pl.concat([came, sent], how="diagonal").sort("t_ps", maintain_order=True)
    both = both.with_columns(at_sender=_forth(both) == both["sent"])
    told = pl.when(~pl.col("sent")).then("clock").forward_fill().over("flow", "at_sender")
    both = both.with_columns(echo=pl.when("sent").then(told))
    seen = both.filter(pl.col("at_sender") == (view == "sender"))
    echoes = both.filter("sent").select("t_ps", "echo", "dropped", *SAME)
    came = _matched(seen.filter(~pl.col("sent")).drop("echo"), echoes)
    rows = pl.concat([came, seen.filter("sent")], how="diagonal").sort("t_ps", maintain_order=True)
    return rows.with_columns(pl.col("echo").fill_null(0)).drop("sent", "at_sender")


def _forth(packets: pl.DataFrame) -> pl.Series:
    """Whether packets travel to the flow's receiver.

    Of control packets of UDT the direction tells, compared with that of data or of the first.
    """
    udt = packets.filter(pl.col("kind") >= UDT_DATA).sort("kind", maintain_order=True)
    ways = udt.group_by("flow", maintain_order=True).agg(way=pl.col("direction").first())
    control = pl.col("kind") == UDT_CONTROL
    return packets.join(ways, on="flow", how="left", maintain_order="left").select(
        forth=pl.when(control)
        .then(pl.col("direction") == pl.col("way"))
        .otherwise(pl.col("kind") != ACK)
    )["forth"]


def _matched(came: pl.DataFrame, sent: pl.DataFrame) -> pl.DataFrame:
    """Packets that came, with columns of the one that was sent.

    ACKs of one number are under way together, and come in their order. Of data, and of an ACK that
    has no such packet before it, as a copy, it is the last of its number that had been sent.
    """
    whole = sent.filter(~pl.col("dropped")) if "dropped" in sent.columns else sent
    turn = pl.int_range(pl.len()).over(SAME).alias("copy")
    told = [name for name in sent.columns if name not in (*SAME, "t_ps", "dropped")]
    came = came.with_columns(turn).join(
        whole.select(*SAME, turn, "t_ps", *told),
        on=[*SAME, "copy"],
        how="left",
        maintain_order="left",
        suffix="_sent",
    )
    first = (pl.col("kind") == ACK) & (pl.col("t_ps_sent") <= pl.col("t_ps"))
    last = came.select("t_ps", *SAME).join_asof(
        sent.select("t_ps", *SAME, *told),
        on="t_ps",
        by=list(SAME),
        strategy="backward",
        check_sortedness=False,
    )
    return came.with_columns(
        **{name: pl.when(first).then(name).otherwise(last[name]) for name in told}
    ).drop("copy", "t_ps_sent")


def _clock() -> pl.Expr:
    """Milliseconds of the trace."""
    return (pl.col("t_ps") // 1_000_000_000 + 1).cast(pl.UInt32, wrap_numerical=True)


def with_handshakes(rows: pl.DataFrame, view: View) -> pl.DataFrame:
    """Rows in order of time, with a handshake added to TCP flows without a recorded one.

    If their sender is seen from its first segment on, the SYN comes a round-trip time before it.
    """
    opened = rows.filter(pl.col("shake") != NO_SHAKE)["flow"].unique()
    tcp = rows.filter((pl.col("kind") < UDP) & ~pl.col("flow").is_in(opened.implode()))
    ack = pl.col("kind") == ACK
    # The side that sends data sends forward unless its ACKs do.
    first = tcp.group_by("flow", maintain_order=True).agg(
        pl.col("t_ps").first(),
        pl.col("link").filter(~ack).first().alias("data_link"),
        pl.col("link").filter(ack).first().alias("ack_link"),
        (pl.col("direction") ^ ack.cast(pl.UInt8)).first().alias("direction"),
        pl.col("seq").min(),
        pl.col("t_ps").filter(ack).first().alias("answer_ps"),
        *(
            pl.col(name).first()
            for name in (
                "number",
                "turn",
                "mss",
                "full",
                "window",
                "ecn",
                "fin",
                "end",
                "end_payload",
            )
        ),
    )
    # A time before the first of the file cannot be written.
    first = first.with_columns(
        rtt_ps=pl.when(
            (pl.lit(view) == "sender")
            & (pl.col("seq") == 0)
            & (pl.col("answer_ps") - pl.col("t_ps") < pl.col("t_ps") + BEGIN_S * 10**12)
        )
        .then(pl.col("answer_ps") - pl.col("t_ps"))
        .otherwise(0)
    )
    shakes = []
    for shake in (SYN, SYN_ACK, THIRD):
        answer = shake == SYN_ACK
        # Where only one side is seen, so it is in the handshake: nobody misses the other.
        own = "ack_link" if answer else "data_link"
        shakes.append(
            first.filter(pl.col(own).is_not_null()).with_columns(
                link=own,
                kind=pl.lit(ACK if answer else DATA, rows["kind"].dtype),
                direction=pl.col("direction") ^ int(answer),
                shake=pl.lit(shake, pl.UInt8),
                t_ps=pl.col("t_ps").cast(pl.Int64)
                - (pl.col("rtt_ps").cast(pl.Int64) if shake == SYN else 0),
            )
        )
    made = pl.concat(shakes).drop("data_link", "ack_link", "answer_ps", "rtt_ps")
    rows = rows.with_columns(pl.col("t_ps").cast(pl.Int64))
    # A stable sort: of one instant, handshakes come first, in their order.
    both = pl.concat([made, rows], how="diagonal_relaxed")
    return both.sort("t_ps", maintain_order=True)


def with_echo(rows: pl.DataFrame) -> pl.DataFrame:
    """Timestamps of rows without: the time, and the last that the other side showed."""
    ack = pl.col("kind") == ACK
    known = [pl.col(name) for name in ("clock", "echo") if name in rows.columns]
    clock = pl.coalesce(*known[:1], _clock())
    rows = rows.with_columns(clock=clock)
    echo = (
        pl.when(ack)
        .then(pl.when(~ack).then("clock").forward_fill().over("flow"))
        .otherwise(pl.when(ack).then("clock").forward_fill().over("flow"))
    )
    return rows.with_columns(echo=pl.coalesce(*known[1:], echo, 0))
