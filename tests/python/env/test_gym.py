"""Does gymnasium's own checker pass, and does the vector agree with the single environment?"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from lfnlab import Range, dumbbell
from lfnlab.errors import UsageError

pytest.importorskip("gymnasium", reason="needs gymnasium; install lfnlab[gym]")

from gymnasium.utils.env_checker import check_env

from lfnlab.env.gym import SenderEnv, SenderVectorEnv

PATH = dumbbell(rate="20Mbit/s", rtt="20ms", buffer="1bdp", duration="1s")
DRAW = {"link.rate": Range("10Mbit/s", "40Mbit/s", "log")}


def test_gymnasiums_checker_passes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A registered environment has a spec; this one is made by its class.
        warnings.filterwarnings("ignore", message=".*spec")
        check_env(SenderEnv(PATH, draw=DRAW), skip_render_check=True)


def test_the_vector_has_the_single_environment_in_it() -> None:
    many, one = SenderVectorEnv(PATH, count=3, draw=DRAW), SenderEnv(PATH, draw=DRAW)
    first, _ = many.reset(seed=4)
    assert np.array_equal(first[0], one.reset(seed=4)[0])
    for factor in (1.0, 0.5, -0.25):
        seen, gained, _, _, _ = many.step(np.full((3, 1), factor, dtype=np.float32))
        own, reward, _, _, _ = one.step(np.array([factor], dtype=np.float32))
        assert np.array_equal(seen[0], own)
        assert gained[0] == reward
        assert many.observation_space.contains(seen)


def test_an_episode_ends_and_the_next_step_begins_another() -> None:
    many = SenderVectorEnv(PATH, count=2, step="0.4s")
    many.reset(seed=1)
    action = np.zeros((2, 1), dtype=np.float32)
    ends = [many.step(action)[3].tolist() for _ in range(5)]
    assert ends == [[False, False], [False, False], [True, True], [False, False], [False, False]]


def test_episodes_that_end_apart_begin_apart() -> None:
    rtts = {"flow[0].rtt": Range("10ms", "50ms")}
    many = SenderVectorEnv(PATH, count=4, draw=rtts, step="5rtt")
    many.reset(seed=1)
    over = np.array([many.step(np.full((4, 1), 0.3, dtype=np.float32))[3] for _ in range(40)])
    assert np.all(over.sum(axis=0) >= 1)
    assert len({tuple(column) for column in over.T}) > 1


def test_a_wrong_action_is_refused() -> None:
    env = SenderEnv(PATH)
    env.reset(seed=1)
    with pytest.raises(UsageError, match="control: the action is the window"):
        SenderEnv(PATH, control="rate")
    with pytest.raises(UsageError, match="action"):
        env.step(np.array([np.nan]))
