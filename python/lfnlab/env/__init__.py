"""Environments for agents that learn: senders whose window or rate someone sets between steps.

>>> from lfnlab import dumbbell
>>> from lfnlab.env import Sender
>>> path = dumbbell(rate="100Mbit/s", rtt="40ms", buffer="1bdp", duration="10s")
>>> sender = Sender(path, count=16, step="10ms")
>>> seen = sender.reset(seed=1)
>>> seen = sender.step([100.0] * 16)
>>> seen["delivery_bps"].shape
(16,)

``docs/env.md`` has the observations. ``lfnlab.env.gym`` has gymnasium's interface.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np

from lfnlab import _core
from lfnlab.analysis.table import markdown
from lfnlab.errors import UsageError
from lfnlab.experiment.design import Choice, Range, with_values
from lfnlab.scenario.builder import Scenario, toml
from lfnlab.scenario.quantity import SECONDS, parsed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from lfnlab.results.summary import Summary

__all__ = ["OBSERVED", "Observation", "Quantity", "Sender"]

LAW = "steered"
"""The name that the reader of an environment's scenario knows."""
_WORDS = {"rtt": "rtts", "rtts": "rtts", "ack": "acks", "acks": "acks"}
_SEED_MAX = 2**63 - 1


class Quantity(NamedTuple):
    """A column of an observation: its unit and meaning."""

    unit: str
    meaning: str


OBSERVED: Mapping[str, Quantity] = {
    "time_s": Quantity("s", "simulated time"),
    "step_s": Quantity("s", "time that the step took"),
    "rtt_s": Quantity("s", "newest RTT sample; 0 before the first"),
    "srtt_s": Quantity("s", "smoothed RTT (RFC 6298); 0 before the first sample"),
    "min_rtt_s": Quantity("s", "smallest RTT sample; 0 before the first"),
    "delivery_bps": Quantity("bit/s", "payload that ACKs of the step tell to be delivered"),
    "delivered": Quantity("segments", "segments that they tell to be delivered, each once"),
    "sent": Quantity("segments", "segments sent in the step, retransmissions included"),
    "retransmits": Quantity("segments", "segments sent again in the step"),
    "timeouts": Quantity("1", "retransmission timeouts in the step"),
    "loss_events": Quantity("1", "congestion events in the step, at most one in a window of data"),
    "marks": Quantity("segments", "segments that arrived with CE, as ACKs of the step tell"),
    "inflight": Quantity("segments", "segments in flight at the end of the step"),
    "cwnd": Quantity("segments", "window that the step had"),
    "pacing_bps": Quantity("bit/s", "pacing rate of payload that the step had; 0: none"),
}
"""Columns of an observation, in their order."""
_COLUMNS = {name: at for at, name in enumerate(OBSERVED)}


class Observation:
    """Observations of all environments after a step.

    ``seen["srtt_s"]`` has one number an environment; ``array`` has a row an environment and a
    column a quantity of :data:`OBSERVED`. ``over`` says which environments are at the end of their
    episode.
    """

    __slots__ = ("array", "over")

    def __init__(self, array: NDArray[np.float64], over: NDArray[np.bool_]) -> None:
        self.array, self.over = array, over

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        if name not in _COLUMNS:
            raise UsageError(f'observation: "{name}"; allowed: {", ".join(OBSERVED)}')
        return self.array[:, _COLUMNS[name]]


class Sender:
    """Senders on simulated paths, steered from outside.

    Args:
        path: a scenario; its flows and its background are cross traffic, with laws of the registry.
            The steered flow comes last.
        draw: values of keys that each reset draws, as :class:`lfnlab.Range` and
            :class:`lfnlab.Choice`: ``{"link.rate": Range("10Mbit/s", "1Gbit/s", "log")}``. The
            steered flow's RTT is ``flow[N].rtt``, N the number of the path's groups of flows.
        count: environments, which advance in one call.
        step: "10ms" or another time, "1rtt" or "0.5rtt" of the smoothed RTT, or "10acks": until so
            many segments more are delivered, at most 1 s.
        control: "cwnd": the action is the window in segments; "rate": the pacing rate in bit/s of
            payload, without a window; "both".
        threads: of a call.
        flow: settings of the steered flow, as of :meth:`lfnlab.Scenario.flow`: ``rtt``, ``ecn``.

    Raises:
        UsageError: arguments that cannot be.
        ScenarioError: when a path is drawn that cannot be simulated.
    """

    def __init__(
        self,
        path: Scenario,
        *,
        draw: Mapping[str, Range | Choice] | None = None,
        count: int = 1,
        step: str = "10ms",
        control: Literal["cwnd", "rate", "both"] = "cwnd",
        threads: int = 1,
        **flow: Any,
    ) -> None:
        for name, value, most in (("count", count, 1_000_000), ("threads", threads, 10_000)):
            whole = isinstance(value, int) and not isinstance(value, bool)
            if not whole or not 1 <= value <= most:
                raise UsageError(f"{name}: {value!r}; allowed: a whole number from 1 to {most}")
        if control not in ("cwnd", "rate", "both"):
            raise UsageError(f'control: "{control}"; allowed: cwnd, rate, both')
        if not isinstance(path, Scenario):
            raise UsageError(f"path: {path!r}; allowed: a Scenario; Scenario.load reads a file")
        if LAW in path.laws:
            raise UsageError(f'path: a flow of "{LAW}"; the one that is steered is added here')
        for key, at in (draw or {}).items():
            if key == "seed":
                raise UsageError("draw: seed: each episode has its own; see reset")
            if not isinstance(at, Range | Choice):
                raise UsageError(f"draw: {key}: {at!r}; allowed: a Range or a Choice")
        if other := sorted({"law", "parallel", "transport"} & flow.keys()):
            raise UsageError(f"{other[0]}: the steered flow is one TCP connection; leave it out")
        self.count, self.threads, self.control = count, threads, control
        self._unit, self._value = _step(step)
        if flow.get("ecn"):
            flow.setdefault("accecn", "option")
        quiet = path if path.sample is not None else replace(path, sample="off")
        self._document = _steered(quiet, flow)
        self._draw = dict(draw or {})
        for key, at in self._draw.items():
            with_key = with_values(self._document, {key: at.at(0.5)})
            if _taken(with_key["flow"][-1]) != _taken(self._document["flow"][-1]):
                raise UsageError(
                    f"draw: {key}: the steered flow is one TCP connection; allowed: other flows"
                )
        self._points: list[dict[str, Any]] = [{} for _ in range(count)]
        self._seeds = [0] * count
        self._episodes = [0] * count
        self._seed: int | None = None
        self._over = np.ones(count, dtype=bool)
        self._all = _core.Environments(count)

    @property
    def points(self) -> Sequence[Mapping[str, Any]]:
        """The values that each environment has drawn."""
        return self._points

    @property
    def episode_seeds(self) -> Sequence[int]:
        """The seed of each environment's simulation."""
        return self._seeds

    def reset(self, seed: int | None = None, *, only: ArrayLike | None = None) -> Observation:
        """Begins an episode of every environment, or of those of a mask.

        Draws depend on the seed, the environment's number and the number of its episode, so that a
        seed gives the same episodes again.

        Args:
            seed: of all randomness; counts episodes from 0 again. Default: go on with the last one,
                at first 1.
            only: a mask, one bool an environment.
        """
        if seed is not None:
            if not isinstance(seed, int | np.integer) or not 0 <= seed <= _SEED_MAX:
                raise UsageError(f"seed: {seed!r}; allowed: a whole number from 0 to {_SEED_MAX}")
            self._seed, self._episodes = int(seed), [0] * self.count
        elif self._seed is None:
            self._seed = 1
        begun = np.ones(self.count, dtype=bool) if only is None else self._mask(only)
        for place in np.flatnonzero(begun):
            self._begin(int(place))
        array = np.zeros((self.count, len(OBSERVED)))
        array[:, _COLUMNS["cwnd"]] = 10.0
        self._over = self._over & ~begun
        return Observation(array, self._over)

    def step(self, action: ArrayLike, *, only: ArrayLike | None = None) -> Observation:
        """Sets windows or rates, and advances each environment by a step.

        Args:
            action: one number an environment; with ``control`` "both" two, window and rate.
            only: a mask of the environments that advance; the others observe zeros.

        Raises:
            UsageError: an environment that has not begun or is over, or an action that cannot be.
            LabError: a simulation that fails.
        """
        given = np.ascontiguousarray(action, dtype=np.float64)
        cwnd = rate = None
        if self.control == "cwnd":
            cwnd = given
        elif self.control == "rate":
            rate = given
        elif given.shape == (self.count, 2):
            cwnd, rate = (np.ascontiguousarray(given[:, column]) for column in (0, 1))
        else:
            raise UsageError(
                f"action: an array of shape {given.shape}; allowed: ({self.count}, 2), window and "
                "rate of each environment"
            )
        mask = None if only is None else self._mask(only).astype(np.uint8)
        array = np.empty((self.count, len(OBSERVED)))
        over = np.empty(self.count, dtype=np.uint8)
        self._all.step(cwnd, rate, mask, self._unit, self._value, self.threads, array, over)
        self._over = over.view(np.bool_)
        return Observation(array, self._over)

    def finish(self, place: int = 0) -> Summary:
        """The result of an environment's episode up to now (``docs/results.md``), which ends it."""
        if not isinstance(place, int) or not 0 <= place < self.count:
            raise UsageError(f"place: {place!r}; allowed: from 0 to {self.count - 1}")
        summary = cast("Summary", json.loads(self._all.finish(place)))
        self._over = self._over | (np.arange(self.count) == place)
        return summary

    def _mask(self, only: ArrayLike) -> NDArray[np.bool_]:
        mask = np.asarray(only)
        if mask.shape != (self.count,) or mask.dtype != bool:
            raise UsageError(
                f"only: {mask.dtype} of shape {mask.shape}; allowed: bool of shape ({self.count},)"
            )
        return mask

    def _begin(self, place: int) -> None:
        episode = f"{self._seed}:{place}:{self._episodes[place]}"
        self._episodes[place] += 1
        # Each key by a stream of its own: a further key does not change the others.
        point = {key: at.at(Random(f"{episode}:{key}").random()) for key, at in self._draw.items()}
        self._points[place] = point
        self._seeds[place] = Random(episode).getrandbits(62)
        said = {**point, "seed": self._seeds[place]}
        self._all.begin(place, toml(with_values(self._document, said)))


def _taken(flow: Mapping[str, Any]) -> list[Any]:
    """The keys of a flow that a draw must leave alone."""
    return [flow.get(name) for name in ("law", "transport", "parallel", "count")]


def _steered(path: Scenario, flow: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a path with the steered flow."""
    with_flow = path.flow("reno", **flow)
    document = with_flow.to_document()
    document["flow"][-1]["law"] = LAW
    return document


def _step(text: str) -> tuple[Literal["s", "rtts", "acks"], float]:
    """Unit and value of a step."""
    allowed = 'allowed: a time as "10ms", "1rtt", "0.5rtt", "10acks"'
    if isinstance(text, str):
        seconds = parsed(text, SECONDS)
        if seconds is not None and 1e-6 <= seconds <= 1e6:
            return "s", seconds
        units = dict.fromkeys(_WORDS, 1.0)
        value = parsed(text, units)
        if value is not None and 0 < value <= 1e6:
            word = _WORDS[text.strip().lstrip("0123456789.eE+- ")]
            if word == "rtts" or (value >= 1 and value == int(value)):
                return cast("Any", word), value
    raise UsageError(f"step: {text!r}; {allowed}")


def documentation() -> list[str]:
    """The table of docs/env.md."""
    rows = [(f"`{name}`", of.unit, of.meaning) for name, of in OBSERVED.items()]
    return [*markdown(("column", "unit", "meaning"), rows)]
