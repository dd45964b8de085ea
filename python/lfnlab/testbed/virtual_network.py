"""The links of a scenario as Linux in virtual time has them, and the routes over them.

A wire joins two nodes; wire ``w`` has the links ``2w`` and ``2w + 1``, one each way. A dumbbell is
the wire of the links forward (0) and reverse (1).
"""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

from lfnlab.errors import ScenarioError
from lfnlab.scenario.quantity import SECONDS, parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Wires of a network, as linux/scenario.h has them.
MOST_WIRES = 16


def refused(key: str, why: str) -> ScenarioError:
    """The error of a key that asks for a thing that Linux in virtual time lacks."""
    return ScenarioError(f"Linux in virtual time cannot run it: {why}", key=key)


class Link(NamedTuple):
    """A link in one direction."""

    name: str
    number: int
    """In the kernel: twice that of its wire, and one more for the way back."""
    key: str
    """Of its table in the scenario."""
    table: Mapping[str, Any]
    ends: tuple[int, int]
    """The nodes that it leads from and to, by number."""


class Network:
    """The links of a scenario by name, in the simulator's order.

    Raises:
        ScenarioError: it has more wires than Linux in virtual time.
    """

    def __init__(self, resolved: Mapping[str, Any]) -> None:
        self.is_dumbbell = "link" in resolved
        self.nodes: dict[str, int] = {}
        self.links: dict[str, Link] = {}
        if self.is_dumbbell:
            forward = resolved["link"]
            self._add("forward", 0, "link", forward, (0, 1))
            self._add("reverse", 1, "link.reverse", forward["reverse"], (1, 0))
            return
        if len(resolved["links"]) > MOST_WIRES:
            raise refused("links", f"it has at most {MOST_WIRES} links, with their ways back")
        for wire, link in enumerate(resolved["links"]):
            near, far = (
                self.nodes.setdefault(link[end], len(self.nodes)) for end in ("from", "to")
            )
            key = f"links[{wire}]"
            self._add(link["name"], 2 * wire, key, link, (near, far))
            if link["duplex"]:
                back = link["reverse"]
                self._add(
                    f"{link['name']}.reverse", 2 * wire + 1, f"{key}.reverse", back, (far, near)
                )

    def _add(
        self, name: str, number: int, key: str, table: Mapping[str, Any], ends: tuple[int, int]
    ) -> None:
        self.links[name] = Link(name, number, key, table, ends)

    def delay_s(self, names: Sequence[str]) -> float:
        """Propagation over links, at the beginning of the run."""
        return sum(parse(self.links[name].table["delay"], SECONDS) for name in names)

    def numbers(self, names: Sequence[str]) -> str:
        """A route in words of the kernel's scenario."""
        return ",".join(str(self.links[name].number) for name in names)

    def routes(self, flow: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """The links of a flow's data, and of its ACKs."""
        if self.is_dumbbell:
            ways = ["forward"], ["reverse"]
            return ways if flow["direction"] == "forward" else (ways[1], ways[0])
        data = self.route(flow)
        return data, list(flow.get("ack_route") or self._back(data))

    def route(self, flow: Mapping[str, Any]) -> list[str]:
        """The links of a flow's or a source's data."""
        if self.is_dumbbell:
            return [flow["direction"]]
        if flow.get("route"):
            return list(flow["route"])
        stops = [self.nodes[stop] for stop in (flow["from"], *flow.get("via", ()), flow["to"])]
        return [
            name for near, far in itertools.pairwise(stops) for name in self._shortest(near, far)
        ]

    def _back(self, data: Sequence[str]) -> list[str]:
        back = [_opposite(name) for name in reversed(data)]
        if all(name in self.links for name in back):
            return back
        return self._shortest(self.links[data[-1]].ends[1], self.links[data[0]].ends[0])

    def _shortest(self, near: int, far: int) -> list[str]:
        """Of the fewest hops, then of the least delay, then of the links that come first."""
        order = list(self.links.values())
        todo: list[tuple[int, float, list[int], int]] = [(0, 0.0, [], near)]
        seen: set[int] = set()
        while todo:
            hops, delay_s, way, at = heapq.heappop(todo)
            if at == far:
                return [order[place].name for place in way]
            if at in seen:
                continue
            seen.add(at)
            for place, link in enumerate(order):
                if link.ends[0] == at:
                    more_s = parse(link.table["delay"], SECONDS)
                    heapq.heappush(todo, (hops + 1, delay_s + more_s, [*way, place], link.ends[1]))
        raise AssertionError("the simulator's check found a route")


def _opposite(name: str) -> str:
    return name.removesuffix(".reverse") if name.endswith(".reverse") else f"{name}.reverse"
