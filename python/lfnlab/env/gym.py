"""Senders with gymnasium's interface: one environment, or many in one call.

Needs gymnasium: ``lfnlab[gym]``. The action in [-1, 1] multiplies the window by 2 to the action;
``features`` and ``reward`` may be the caller's.

>>> from gymnasium.utils.env_checker import check_env  # doctest: +SKIP
>>> from lfnlab import Range, dumbbell  # doctest: +SKIP
>>> from lfnlab.env.gym import SenderEnv  # doctest: +SKIP
>>> path = dumbbell(rate="100Mbit/s", rtt="40ms", buffer="1bdp", duration="10s")  # doctest: +SKIP
>>> check_env(SenderEnv(path, draw={"link.rate": Range("10Mbit/s", "1Gbit/s", "log")}))
... # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab.env import Sender
from lfnlab.errors import Unavailable, UsageError

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError:
    raise Unavailable("lfnlab.env.gym needs gymnasium; install lfnlab[gym]") from None

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lfnlab.env import Observation
    from lfnlab.experiment.design import Choice, Range
    from lfnlab.scenario.builder import Scenario

    Array = NDArray[np.float32]
    Features = Callable[[Observation], Array]
    Reward = Callable[[Observation], NDArray[np.float64]]

__all__ = ["FEATURES", "SenderEnv", "SenderVectorEnv", "features", "reward"]

FEATURES = 8
"""Numbers of :func:`features`."""
MOST = 10.0
"""The largest of them."""
LEAST_WINDOW, MOST_WINDOW = 2.0, 2.0**14
"""Of the actions, in segments: 1.9 Gbit/s at 100 ms."""
LOSS_WEIGHT = 10.0
"""Of the part of segments that are sent again, in :func:`reward`."""
_FLOOR_BPS = 1e3


def features(seen: Observation) -> Array:
    """The default features: eight numbers from 0 to 10 an environment, without a unit.

    Queueing delay of the smoothed and of the newest RTT over the smallest RTT; parts of the sent
    segments that were sent again, and of the delivered ones that were marked; segments in flight
    over the window; whether a timeout came; segments delivered over the window; the logarithm to
    base 2 of the window over 2.
    """
    least = np.maximum(seen["min_rtt_s"], 1e-9)
    window = np.maximum(seen["cwnd"], 1.0)
    found = np.stack(
        [
            np.maximum(0.0, seen["srtt_s"] - seen["min_rtt_s"]) / least,
            np.maximum(0.0, seen["rtt_s"] - seen["min_rtt_s"]) / least,
            seen["retransmits"] / np.maximum(seen["sent"], 1.0),
            seen["marks"] / np.maximum(seen["delivered"], 1.0),
            seen["inflight"] / window,
            np.minimum(seen["timeouts"], 1.0),
            seen["delivered"] / window,
            np.log2(window) / 2.0,
        ],
        axis=1,
    )
    return np.asarray(np.clip(found, 0.0, MOST), dtype=np.float32)


def reward(seen: Observation) -> NDArray[np.float64]:
    """ln(delivery rate in Mbit/s) - ln(RTT over the smallest RTT) - 10 times the part sent again.

    Of rates below 1 kbit/s that of 1 kbit/s. Source: Winstein, Balakrishnan, SIGCOMM 2013, the
    objective of Remy with delta = 1; the part of losses is this laboratory's, since a short buffer
    would make them free.
    """
    rate = np.maximum(seen["delivery_bps"], _FLOOR_BPS) / 1e6
    known = seen["min_rtt_s"] > 0
    stretch = np.where(known, seen["srtt_s"] / np.where(known, seen["min_rtt_s"], 1.0), 1.0)
    again = seen["retransmits"] / np.maximum(seen["sent"], 1.0)
    return np.asarray(np.log(rate) - np.log(np.maximum(stretch, 1.0)) - LOSS_WEIGHT * again)


class _Steered:
    """Senders with windows that actions multiply, features and rewards."""

    def __init__(
        self,
        path: Scenario,
        count: int,
        draw: Mapping[str, Range | Choice] | None,
        step: str,
        threads: int,
        features_: Features,
        reward_: Reward,
        flow: Mapping[str, Any],
    ) -> None:
        if other := sorted({"control", "count"} & flow.keys()):
            raise UsageError(f"{other[0]}: the action is the window of one sender; leave it out")
        self.sender = Sender(path, draw=draw, count=count, step=step, threads=threads, **flow)
        self.features, self.reward = features_, reward_
        self.windows = np.full(count, 10.0)

    def reset(self, seed: int | None, only: NDArray[np.bool_] | None = None) -> Observation:
        seen = self.sender.reset(seed, only=only)
        self.windows[slice(None) if only is None else only] = 10.0
        return seen

    def step(self, action: NDArray[Any], only: NDArray[np.bool_] | None = None) -> Observation:
        given = np.asarray(action, dtype=np.float64)
        if given.shape != (self.sender.count, 1) or not np.all(np.isfinite(given)):
            raise UsageError(
                f"action: {given.tolist()}; allowed: finite numbers of shape "
                f"({self.sender.count}, 1)"
            )
        factor = np.exp2(np.clip(given[:, 0], -1.0, 1.0))
        if only is not None:
            factor[~only] = 1.0
        self.windows = np.clip(self.windows * factor, LEAST_WINDOW, MOST_WINDOW)
        return self.sender.step(self.windows, only=only)


def _spaces() -> tuple[spaces.Box, spaces.Box]:
    """Of features and of an action."""
    return (
        spaces.Box(0.0, MOST, (FEATURES,), np.float32),
        spaces.Box(-1.0, 1.0, (1,), np.float32),
    )


class SenderEnv(gymnasium.Env[Any, Any]):
    """One sender.

    Args:
        path, draw, step, flow: as of :class:`lfnlab.env.Sender`.
        features: of an observation, a row an environment.
        observation_space: of other features.
        reward: of an observation, a number an environment.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - gymnasium's own attribute

    def __init__(
        self,
        path: Scenario,
        *,
        draw: Mapping[str, Range | Choice] | None = None,
        step: str = "1rtt",
        features: Features = features,
        observation_space: spaces.Space[Any] | None = None,
        reward: Reward = reward,
        **flow: Any,
    ) -> None:
        self._all = _Steered(path, 1, draw, step, 1, features, reward, flow)
        own, self.action_space = _spaces()
        self.observation_space = own if observation_space is None else observation_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begins an episode."""
        super().reset(seed=seed)
        return self._all.features(self._all.reset(seed))[0], {**self._all.sender.points[0]}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Multiplies the window, and advances by a step."""
        seen = self._all.step(np.asarray(action, dtype=np.float64)[np.newaxis])
        told = {name: float(seen[name][0]) for name in ("delivery_bps", "srtt_s", "cwnd")}
        own = self._all.features(seen)[0], float(self._all.reward(seen)[0])
        return *own, False, bool(seen.over[0]), told


class SenderVectorEnv(VectorEnv[Any, Any, Any]):
    """Many senders, which advance in one call.

    An environment whose episode ended restarts at the next step, which ignores its action.

    Args:
        count, threads: as of :class:`lfnlab.env.Sender`; the rest as of :class:`SenderEnv`.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        path: Scenario,
        *,
        count: int,
        draw: Mapping[str, Range | Choice] | None = None,
        step: str = "1rtt",
        threads: int = 1,
        features: Features = features,
        observation_space: spaces.Space[Any] | None = None,
        reward: Reward = reward,
        **flow: Any,
    ) -> None:
        self._all = _Steered(path, count, draw, step, threads, features, reward, flow)
        own, self.single_action_space = _spaces()
        self.single_observation_space = own if observation_space is None else observation_space
        self.observation_space = batch_space(self.single_observation_space, count)
        self.action_space = batch_space(self.single_action_space, count)
        self.num_envs = count
        self._over = np.zeros(count, dtype=bool)

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begins an episode of each; ``seed`` is one number."""
        if isinstance(seed, list):
            raise UsageError(
                "seed: a list; allowed: one number, of which each environment has its own"
            )
        super().reset(seed=seed)
        self._over[:] = False
        return self._all.features(self._all.reset(seed)), {}

    def step(
        self, actions: Any
    ) -> tuple[Array, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Multiplies the windows, and advances by a step."""
        never = np.zeros(self.num_envs, dtype=bool)
        if not self._over.any():
            seen = self._all.step(actions)
            self._over = seen.over.copy()
            return self._all.features(seen), self._all.reward(seen), never, seen.over, {}
        begun = self._over
        first = self._all.features(self._all.reset(None, begun))
        if begun.all():
            self._over = never.copy()
            return first, np.zeros(self.num_envs), never, never.copy(), {}
        seen = self._all.step(actions, ~begun)
        told = np.where(begun[:, np.newaxis], first, self._all.features(seen))
        self._over = seen.over & ~begun
        gained = np.where(begun, 0.0, self._all.reward(seen))
        return told, gained, never, self._over.copy(), {}
