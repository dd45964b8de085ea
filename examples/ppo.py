"""Trains a window with stable-baselines3's PPO, and puts it beside CUBIC on held-out paths.

$ pip install 'lfnlab[gym]' stable-baselines3
$ python examples/ppo.py                 a million steps, a few minutes of one core
$ python examples/ppo.py --steps 20000   to see that it runs

The agent sees the eight numbers of lfnlab.env.gym.features and multiplies its window once a round
trip. It trains alone on drawn paths without random loss. The tables are of held-out paths: other
draws, with rates, RTTs and losses beyond those of the training, and with a CUBIC flow beside it.
examples/ppo.ipynb shows a run with its figures.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv

from lfnlab import Range, Scenario, _core, dumbbell
from lfnlab.env import Sender
from lfnlab.env.gym import SenderEnv, features, reward
from lfnlab.experiment.design import with_values

PATH = dumbbell(
    rate="50Mbit/s", rtt="40ms", buffer="1bdp", duration="10s", warmup="2s", sample="off"
)
TRAINING = {
    "link.rate": Range("5Mbit/s", "100Mbit/s", "log"),
    "flow[0].rtt": Range("10ms", "100ms", "log"),
    "link.queue.size": Range("0.3bdp", "2bdp", "log"),
}
HELD_OUT = {
    "link.rate": Range("20Mbit/s", "200Mbit/s", "log"),
    "flow[*].rtt": Range("20ms", "150ms", "log"),
    "link.queue.size": Range("0.3bdp", "2bdp", "log"),
}
LOSSES = (0.0, 1e-4, 1e-3)
COUNT, PATHS = 16, 24


class Vector(VecEnv):
    """Senders as stable-baselines3 has them: an episode that ends restarts in the same step."""

    def __init__(self, count: int) -> None:
        single = SenderEnv(PATH)
        super().__init__(count, single.observation_space, single.action_space)
        self.sender = Sender(PATH, draw=TRAINING, count=count, step="1rtt")
        self.windows = np.full(count, 10.0)
        self.spent_s = 0.0

    def reset(self) -> np.ndarray:
        self.windows[:] = 10.0
        return features(self.sender.reset())

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        begun = time.process_time()
        self.windows = steered(self.windows, self.actions)
        seen = self.sender.step(self.windows)
        told, gained = features(seen), reward(seen).astype(np.float32)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if seen.over.any():
            for place in np.flatnonzero(seen.over):
                infos[place] = {"terminal_observation": told[place], "TimeLimit.truncated": True}
            first = features(self.sender.reset(only=seen.over))
            told[seen.over] = first[seen.over]
            self.windows[seen.over] = 10.0
        self.spent_s += time.process_time() - begun
        return told, gained, seen.over, infos

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


def steered(windows: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """The windows after the actions of agents: times 2 to the action, 2 to 4096 segments."""
    return np.clip(windows * np.exp2(np.clip(actions[:, 0], -1.0, 1.0)), 2.0, 2.0**12)


class Trained(NamedTuple):
    """An agent, and the CPU time in s that it and its environments took."""

    model: PPO
    steps: int
    whole_s: float
    environment_s: float


def trained(steps: int = 1_000_000, seed: int = 1) -> Trained:
    """An agent after so many steps, on one core."""
    torch.set_num_threads(1)
    begun = time.process_time()
    vector = Vector(COUNT)
    vector.sender.reset(seed=seed)
    model = PPO(
        "MlpPolicy",
        vector,
        n_steps=256,
        batch_size=512,
        n_epochs=8,
        gamma=0.98,
        learning_rate=lambda left: 3e-4 * left,
        seed=seed,
        device="cpu",
    )
    model.learn(steps)
    return Trained(model, model.num_timesteps, time.process_time() - begun, vector.spent_s)


def held_out(loss: float, neighbours: int) -> Scenario:
    """The path with random loss and flows of CUBIC."""
    assert PATH.link is not None
    path = replace(PATH, link=replace(PATH.link, loss=loss or None))
    if not neighbours:
        return path
    # Flows take some time to find their shares.
    return replace(path, duration="40s", warmup="20s").flow("cubic", count=neighbours)


def agents(model: PPO, path: Scenario) -> list[tuple[dict[str, Any], int, dict[str, Any]]]:
    """Of each held-out path its values, its seed and the result of the agent."""
    sender = Sender(path, draw=HELD_OUT, count=PATHS, step="1rtt")
    seen = sender.reset(seed=2**40)
    windows = np.full(PATHS, 10.0)
    over = seen.over
    while not over.all():
        actions, _ = model.predict(features(seen), deterministic=True)
        windows = np.where(over, windows, steered(windows, actions))
        seen = sender.step(windows, only=~over)
        over = seen.over
    return [
        (dict(sender.points[place]), sender.episode_seeds[place], dict(sender.finish(place)))
        for place in range(PATHS)
    ]


def cubic(path: Scenario, point: dict[str, Any], seed: int) -> dict[str, Any]:
    """CUBIC's result in the agent's place, with the same seed."""
    said = with_values(path.flow("cubic").to_document(), {**point, "seed": seed})
    text = Scenario.from_document(said).to_toml()
    (run,) = _core.run_many([_core.Scenario(text)], 1, None, sampled=False)
    assert run is not None
    return dict(json.loads(run.summary()))


def compared(model: PPO) -> pl.DataFrame:
    """A row a law and held-out path: alone at each random loss, and beside a flow of CUBIC.

    Columns: ``loss``, ``neighbours``, ``path``, ``law``; ``goodput`` over the link's rate,
    ``queue`` over the base RTT, ``retransmitted`` over sent segments, and ``share`` of the goodput
    of all flows.
    """
    rows = []
    for loss, neighbours in (*((loss, 0) for loss in LOSSES), (0.0, 1)):
        path = held_out(loss, neighbours)
        for number, (point, seed, result) in enumerate(agents(model, path)):
            for law, made in (("ppo", result), ("cubic", cubic(path, point, seed))):
                own, link = made["flows"][-1], made["links"][0]
                rows.append(
                    {
                        "loss": loss,
                        "neighbours": neighbours,
                        "path": number,
                        "law": law,
                        "goodput": own["goodput_bps"] / link["rate_bps"],
                        "queue": link["mean_queue_s"] / own["rtt_s"],
                        "retransmitted": own["retransmits"] / own["sent"],
                        "share": own["goodput_bps"]
                        / sum(flow["goodput_bps"] for flow in made["flows"]),
                    }
                )
    return pl.DataFrame(rows)


def medians(table: pl.DataFrame) -> pl.DataFrame:
    """Over the paths."""
    keys = ("neighbours", "loss", "law")
    numbers = ("goodput", "queue", "retransmitted", "share")
    return table.group_by(keys, maintain_order=True).agg(pl.col(numbers).median())


def main() -> None:
    """Trains and compares."""
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=1_000_000)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    made = trained(chosen.steps, chosen.seed)
    print(
        f"{made.steps:,} steps in {made.whole_s:.0f} s of CPU time, {made.environment_s:.1f} s "
        f"({made.environment_s / made.whole_s:.1%}) of them in the environment"
    )
    print(f"medians over {PATHS} held-out paths")
    with pl.Config(tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
        print(medians(compared(made.model)))


if __name__ == "__main__":
    main()
