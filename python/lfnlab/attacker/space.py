"""The space that an attack searches: keys of a path, each with a plain value.

A path is a mapping from names of :data:`KEYS` to values; a key that is missing has its plain value.
The empty mapping is the plain dumbbell. Every value has at most two significant digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from lfnlab.errors import UsageError

Value = float | str
Path = Mapping[str, Value]
"""The keys that differ from the plain dumbbell, in the order of :data:`KEYS`."""

MOST_LOSS = 0.01
"""Highest mean of random losses, of data and of ACKs, each."""
MOST_UDP = 0.15
"""Highest mean rate of UDP, of the link's."""
MOST_DOWN = 0.5
"""Longest outage, of the time between two of them."""
FASTEST_MBPS = 100.0
PACKET_BYTES = 1514
"""On the link."""
LEAST_PACKETS = 4
"""Of a buffer."""
DRAWN = 4
"""A drawn path has 1 to so many keys besides rate, RTT and buffer."""


@dataclass(frozen=True)
class Key:
    """One key of a path.

    Args:
        name: as results call it; a number's ends with its unit, and one without is a factor.
        plain: its value in the plain dumbbell.
        low: least value that is drawn.
        high: highest value.
        words: its other values, in place of numbers.
        group: what it is a part of; keys of one group act together.
        whole: whether its values are whole numbers.
        needs: the key without which it does nothing.
    """

    name: str
    plain: Value
    group: str
    low: float = 0.0
    high: float = 0.0
    words: tuple[str, ...] = ()
    whole: bool = False
    needs: str = ""


_KEYS = (
    Key("rate_mbps", 20.0, "path", 2, FASTEST_MBPS),
    Key("rtt_ms", 40.0, "path", 4, 300),
    Key("buffer_bdp", 1.0, "path", 0.05, 20),
    Key("queue", "drop-tail", "queue", words=("drop-head", "red", "codel", "fq-codel", "pie")),
    Key("loss", 0.0, "loss", 1e-5, MOST_LOSS),
    Key("loss_burst", 1.0, "loss", 2, 50, needs="loss"),
    Key("reorder", 0.0, "order", 1e-4, 0.1),
    Key("reorder_ms", 10.0, "order", 0.5, 100, needs="reorder"),
    Key("jitter_ms", 0.0, "order", 0.5, 50),
    Key("ack_loss", 0.0, "acks", 1e-4, MOST_LOSS),
    Key("ack_batch_ms", 0.0, "acks", 0.5, 50),
    Key("ack_jitter_ms", 0.0, "acks", 0.5, 50),
    Key("back_rate", 1.0, "acks", 0.005, 0.5),
    Key("step_rate", 1.0, "changes", 0.1, 4),
    Key("step_delay_ms", 0.0, "changes", 2, 300),
    Key("outage_s", 0.0, "changes", 0.05, 2),
    Key("change_every_s", 4.0, "changes", 0.5, 10),
    Key("udp", 0.0, "udp", 0.1, 2),
    Key("udp_for_s", 0.5, "udp", 0.02, 2, needs="udp"),
    Key("udp_every_s", 5.0, "udp", 0.1, 10, needs="udp"),
    Key("short_flows", 0.0, "short", 0.05, 0.4),
    Key("flows", 1.0, "flows", 2, 8, whole=True),
    Key("neighbour", "none", "neighbour", words=("cubic",)),
    Key("neighbour_rtt", 1.0, "neighbour", 0.2, 5, needs="neighbour"),
    Key("ends_s", 0.0, "end", 3, 10),
)
KEYS: Mapping[str, Key] = {key.name: key for key in _KEYS}
"""Every key, in the order of results."""
_ALWAYS = ("rate_mbps", "rtt_ms", "buffer_bdp")
TROUBLES = ("loss", "step_rate", "step_delay_ms", "outage_s", "udp")
"""Keys that ``ends_s`` ends."""


def number(path: Path, name: str) -> float:
    """The value of a key that is a number, plain where the path has none."""
    return float(path.get(name, KEYS[name].plain))


def word(path: Path, name: str) -> str:
    """The value of a key that is a word."""
    return str(path.get(name, KEYS[name].plain))


def buffer(path: Path) -> str:
    """The bottleneck's buffer as a scenario has it: in BDPs, but at least four packets."""
    rtt_ms = number(path, "rtt_ms") * max(1.0, number(path, "neighbour_rtt"))
    bdp_bytes = number(path, "rate_mbps") * 1e3 * rtt_ms / 8.0
    if number(path, "buffer_bdp") * bdp_bytes < LEAST_PACKETS * PACKET_BYTES:
        return f"{LEAST_PACKETS} packets"
    return f"{number(path, 'buffer_bdp'):g}bdp"


def rounded(value: float, digits: int = 2) -> float:
    """A number of at most so many significant digits."""
    return float(f"{value:.{digits - 1}e}")


def check(path: Path, at: str) -> None:
    """Refuse keys that are none, and values outside their bounds.

    Raises:
        UsageError: naming place, key and what is allowed.
    """
    for name, value in path.items():
        key = KEYS.get(name)
        if key is None:
            raise UsageError(f'{at}: no key "{name}"; allowed: {", ".join(KEYS)}')
        if value == key.plain:
            continue
        if key.words and value not in key.words:
            raise UsageError(f"{at}: {name} {value!r}; allowed: {', '.join(key.words)}")
        good = isinstance(value, int | float) and not isinstance(value, bool)
        if not key.words and not (good and key.low <= value <= key.high):  # type: ignore[operator]
            raise UsageError(f"{at}: {name} {value!r}; allowed: {key.low:g} to {key.high:g}")


def valid(path: Path) -> dict[str, Value]:
    """The path within its bounds, without keys that do nothing, in the order of the keys.

    UDP has at most 15 % of the link on average, an outage lasts at most half of the time between
    two of them, and a step leads to at most 100 Mbit/s.
    """
    made = {
        name: path[name] for name, key in KEYS.items() if path.get(name, key.plain) != key.plain
    }
    for name, key in KEYS.items():
        if name in made and not key.words:
            value = min(max(float(made[name]), key.low), key.high)
            made[name] = float(round(value)) if key.whole else rounded(value)
    if "step_rate" in made:
        most = FASTEST_MBPS / number(made, "rate_mbps")
        made["step_rate"] = _down(min(number(made, "step_rate"), most))
    if "outage_s" in made:
        most = MOST_DOWN * number(made, "change_every_s")
        made["outage_s"] = _down(min(number(made, "outage_s"), most))
    if "udp" in made:
        most = number(made, "udp_every_s") * min(1.0, MOST_UDP / number(made, "udp"))
        made["udp_for_s"] = _down(min(number(made, "udp_for_s"), most))
    made = {name: value for name, value in made.items() if value != KEYS[name].plain}
    for name, key in KEYS.items():
        if key.needs and key.needs not in made:
            made.pop(name, None)
    if not any(name in made for name in ("step_rate", "step_delay_ms", "outage_s")):
        made.pop("change_every_s", None)
    if not any(name in made for name in TROUBLES):
        made.pop("ends_s", None)
    return {name: made[name] for name in KEYS if name in made}


def _down(value: float) -> float:
    """The number of two digits that is not above the value."""
    near = rounded(value)
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return near if near <= value else rounded(near - step)


def calm(path: Path) -> dict[str, Value]:
    """The path without the trouble that ``ends_s`` ends."""
    return valid({name: value for name, value in path.items() if name not in TROUBLES})


def groups(path: Path) -> tuple[str, ...]:
    """The groups of a path's keys besides rate, RTT and buffer, in their order."""
    there = dict.fromkeys(KEYS[name].group for name in path)
    return tuple(group for group in there if group != "path")


def drawn(random: Random) -> dict[str, Value]:
    """A path at random: rate, RTT and buffer each in two of three cases, and one to four keys."""
    path = {name: _any(KEYS[name], random) for name in _ALWAYS if random.random() < 2 / 3}
    others = [name for name in KEYS if name not in _ALWAYS]
    for _ in range(1 + _below(DRAWN, random)):
        key = KEYS[others[_below(len(others), random)]]
        path |= {name: _any(KEYS[name], random) for name in (key.needs, key.name) if name}
    return valid(path)


def changed(path: Path, other: Path, random: Random) -> dict[str, Value]:
    """A path made of two: one to three changes, each of a value, a new key, or one key less."""
    made = dict(path)
    if other and random.random() < 0.25:
        taken = groups(other) or ("path",)
        group = taken[_below(len(taken), random)]
        made |= {name: value for name, value in other.items() if KEYS[name].group == group}
    for _ in range(1 + _below(3, random)):
        kind, names = random.random(), list(made)
        if kind < 0.25 and len(names) > 1:
            del made[names[_below(len(names), random)]]
        elif kind < 0.5 or not names:
            key = _KEYS[_below(len(_KEYS), random)]
            made |= {name: _any(KEYS[name], random) for name in (key.needs, key.name) if name}
        else:
            key = KEYS[names[_below(len(names), random)]]
            made[key.name] = _near(key, made[key.name], random)
    return valid(made)


def rounder(path: Path, name: str) -> Iterator[dict[str, Value]]:
    """The same path with a rounder value of one key: of one digit, 1, 2 or 5 first."""
    value = number(path, name)
    one = rounded(value, 1)
    power = 10.0 ** math.floor(math.log10(value))
    near = sorted((1, 2, 5, 10), key=lambda step: abs(math.log(step * power / value)))
    for better in dict.fromkeys((rounded(near[0] * power), rounded(near[1] * power), one)):
        if better != value:
            yield valid({**path, name: better})


def _any(key: Key, random: Random) -> Value:
    if key.words:
        return key.words[_below(len(key.words), random)]
    return key.low * math.pow(key.high / key.low, random.random())


def _near(key: Key, value: Value, random: Random) -> Value:
    """Another value: a third of a decade away on average, or any."""
    if key.words or random.random() < 0.1:
        return _any(key, random)
    step = sum(random.random() for _ in range(4)) - 2.0
    return float(value) * math.pow(10.0, step * 0.6)


def _below(count: int, random: Random) -> int:
    """A whole number below ``count``. Only Random.random() is the same in every Python."""
    return int(random.random() * count)


def in_words(path: Path) -> str:
    """A path in words."""
    rate, rtt = number(path, "rate_mbps"), number(path, "rtt_ms")
    kind = word(path, "queue")
    says = [f"{rate:g} Mbit/s × {rtt:g} ms, buffer {buffer(path).replace('bdp', ' BDP')}"]
    says += [f"queue {kind}"] * (kind != "drop-tail")
    says += [text for name in path if (text := _words(path, name))]
    return ", ".join(says)


def _words(path: Path, name: str) -> str:
    value = path[name]
    every = f"{number(path, 'change_every_s'):g} s"
    burst = number(path, "loss_burst")
    rtt_ms = number(path, "neighbour_rtt") * number(path, "rtt_ms")
    texts = {
        "loss": f"random loss of {number(path, 'loss') * 100:g} %"
        + (f" in bursts of {burst:g} packets" if burst > 1 else ""),
        "reorder": f"{number(path, 'reorder') * 100:g} % of the packets held up for "
        f"{number(path, 'reorder_ms'):g} ms",
        "jitter_ms": f"jitter of up to {value} ms",
        "ack_loss": f"{number(path, 'ack_loss') * 100:g} % of the ACKs lost",
        "ack_batch_ms": f"ACKs that go on together each {value} ms",
        "ack_jitter_ms": f"jitter of the ACKs of up to {value} ms",
        "back_rate": f"ACKs over a link of {number(path, 'back_rate') * 100:g} % of the rate",
        "step_rate": f"a rate that is {value} times as high in every other half of {every}",
        "step_delay_ms": f"a delay that is {value} ms longer in every other half of {every}",
        "outage_s": f"an outage of {value} s each {every}",
        "udp": f"UDP of {number(path, 'udp') * number(path, 'rate_mbps'):.3g} Mbit/s for "
        f"{number(path, 'udp_for_s'):g} s each {number(path, 'udp_every_s'):g} s",
        "short_flows": f"short flows with {number(path, 'short_flows') * 100:g} % of the rate",
        "flows": f"{value} flows",
        "neighbour": "a CUBIC neighbour"
        + (
            ""
            if number(path, "neighbour_rtt") == 1
            else f" with an RTT of {rounded(rtt_ms, 3):g} ms"
        ),
        "ends_s": f"all of which ends after {value} s",
    }
    text = texts.get(name, "")
    return text.replace(".0 ", " ")


def times(every_s: float, end_s: float) -> Sequence[float]:
    """The beginnings of periods before an end, in seconds."""
    return [index * every_s for index in range(math.ceil(end_s / every_s - 1e-9))]
