//! The links of a topology as a directed graph, and the routes over them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use lfn_sim::config::LinkId;
use lfn_units::{Rate, Time};

use crate::model::{Mode, OneWay, Topology, LINKS_MAX};

/// One direction of a link.
pub(crate) struct Hop<'a> {
    pub(crate) name: String,
    pub(crate) way: &'a OneWay,
    pub(crate) mode: Mode,
    from: usize,
    to: usize,
    /// Number of the opposite direction.
    opposite: Option<LinkId>,
}

/// The directed links in their order, and the nodes that they join.
pub(crate) struct Network<'a> {
    pub(crate) hops: Vec<Hop<'a>>,
    nodes: Vec<String>,
    node_numbers: BTreeMap<String, usize>,
    link_numbers: BTreeMap<String, LinkId>,
    /// Numbers of the links that begin at each node, and that end there.
    leaving: Vec<Vec<LinkId>>,
    entering: Vec<Vec<LinkId>>,
}

/// Why links make up no route.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadRoute {
    /// A link begins elsewhere than its predecessor ends.
    Gap { before: LinkId, next: LinkId },
    /// A link comes to a node for the second time.
    Loop { last: LinkId },
}

impl<'a> Network<'a> {
    pub(crate) fn new(topology: &'a Topology) -> Network<'a> {
        let mut network = Network {
            hops: Vec::new(),
            nodes: Vec::new(),
            node_numbers: BTreeMap::new(),
            link_numbers: BTreeMap::new(),
            leaving: Vec::new(),
            entering: Vec::new(),
        };
        let opposite = |name: &str| format!("{name}.reverse");
        match topology {
            Topology::Dumbbell(link) => {
                let names = ["forward".into(), "reverse".into()];
                network.add(names, ["left", "right"], &link.forward, link.mode, Some(&link.reverse));
            }
            Topology::ParkingLot(lot) => {
                for hop in 1..=lot.hops {
                    let name = format!("hop{hop}");
                    let ends = [&*hop.to_string(), &*(hop + 1).to_string()];
                    network.add(
                        [name.clone(), opposite(&name)],
                        ends,
                        &lot.forward,
                        lot.mode,
                        Some(&lot.reverse),
                    );
                }
            }
            Topology::Graph(links) => {
                for link in links {
                    let names = [link.name.0.clone(), opposite(&link.name.0)];
                    network.add(
                        names,
                        [&link.from.0, &link.to.0],
                        &link.forward,
                        link.mode,
                        link.reverse.as_deref(),
                    );
                }
            }
        }
        network
    }

    /// Adds a link; beyond [`LINKS_MAX`] none.
    fn add(
        &mut self,
        names: [String; 2],
        ends: [&str; 2],
        forward: &'a OneWay,
        mode: Mode,
        reverse: Option<&'a OneWay>,
    ) {
        let number = self.hops.len();
        if number + 2 > LINKS_MAX {
            return;
        }
        let [from, to] = ends.map(|name| self.add_node(name));
        let number = number as u16;
        let [name, opposite_name] = names;
        let opposite = reverse.map(|_| LinkId(number + 1));
        self.add_hop(Hop { name, way: forward, mode, from, to, opposite });
        if let Some(way) = reverse {
            let opposite = Some(LinkId(number));
            self.add_hop(Hop { name: opposite_name, way, mode, from: to, to: from, opposite });
        }
    }

    fn add_node(&mut self, name: &str) -> usize {
        if let Some(&number) = self.node_numbers.get(name) {
            return number;
        }
        self.node_numbers.insert(name.into(), self.nodes.len());
        self.nodes.push(name.into());
        self.leaving.push(Vec::new());
        self.entering.push(Vec::new());
        self.nodes.len() - 1
    }

    fn add_hop(&mut self, hop: Hop<'a>) {
        let number = LinkId(self.hops.len() as u16);
        self.link_numbers.insert(hop.name.clone(), number);
        self.leaving[hop.from].push(number);
        self.entering[hop.to].push(number);
        self.hops.push(hop);
    }

    pub(crate) fn link(&self, name: &str) -> Option<LinkId> {
        self.link_numbers.get(name).copied()
    }

    /// All links in their order.
    pub(crate) fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.hops.len() as u16).map(LinkId)
    }

    pub(crate) fn link_names(&self) -> impl Iterator<Item = &str> + Clone {
        self.hops.iter().map(|hop| &*hop.name)
    }

    pub(crate) fn node(&self, name: &str) -> Option<usize> {
        self.node_numbers.get(name).copied()
    }

    pub(crate) fn node_names(&self) -> impl Iterator<Item = &str> + Clone {
        self.nodes.iter().map(|name| &**name)
    }

    pub(crate) fn node_name(&self, node: usize) -> &str {
        &self.nodes[node]
    }

    /// One direction of a link.
    pub(crate) fn hop(&self, link: LinkId) -> &Hop<'a> {
        &self.hops[link.index()]
    }

    /// Nodes where a route begins and ends.
    pub(crate) fn ends(&self, links: &[LinkId]) -> (usize, usize) {
        (self.hop(links[0]).from, self.hop(links[links.len() - 1]).to)
    }

    /// Propagation delay of a route.
    pub(crate) fn delay(&self, links: &[LinkId]) -> Time {
        links.iter().fold(Time::ZERO, |sum, &link| sum.after(self.hop(link).way.delay))
    }

    /// Rate of the slowest link of a route.
    pub(crate) fn slowest(&self, links: &[LinkId]) -> Rate {
        links.iter().map(|&link| self.hop(link).way.mean_rate()).min().unwrap_or(Rate(0))
    }

    /// The opposite direction of a route, if all of its links have one.
    pub(crate) fn opposite(&self, links: &[LinkId]) -> Option<Vec<LinkId>> {
        links.iter().rev().map(|&link| self.hop(link).opposite).collect()
    }

    /// Checks that links follow each other and come to no node twice.
    pub(crate) fn check(&self, links: &[LinkId]) -> Result<(), BadRoute> {
        for pair in links.windows(2) {
            if self.hop(pair[0]).to != self.hop(pair[1]).from {
                return Err(BadRoute::Gap { before: pair[0], next: pair[1] });
            }
        }
        let mut seen = vec![false; self.nodes.len()];
        if let Some(&first) = links.first() {
            seen[self.hop(first).from] = true;
        }
        for &link in links {
            if std::mem::replace(&mut seen[self.hop(link).to], true) {
                return Err(BadRoute::Loop { last: link });
            }
        }
        Ok(())
    }

    /// Of the paths of fewest links the one of least delay, of those the one whose links have the lowest
    /// numbers; `None` if there is no path, no link from a node to itself.
    pub(crate) fn shortest(&self, from: usize, to: usize) -> Option<Vec<LinkId>> {
        // Dijkstra (1959) from the end, then forward along links that lose nothing.
        let mut cost = vec![(usize::MAX, Time::NEVER); self.nodes.len()];
        cost[to] = (0, Time::ZERO);
        let mut todo = BinaryHeap::from([Reverse((cost[to], to))]);
        let over =
            |link: LinkId, (hops, delay): (usize, Time)| (hops + 1, self.hop(link).way.delay.after(delay));
        while let Some(Reverse((least, node))) = todo.pop() {
            if least > cost[node] {
                continue;
            }
            for &link in &self.entering[node] {
                let before = self.hop(link).from;
                let through = over(link, least);
                if through < cost[before] {
                    cost[before] = through;
                    todo.push(Reverse((through, before)));
                }
            }
        }
        if cost[from].0 == usize::MAX {
            return None;
        }
        let mut links = Vec::new();
        let mut node = from;
        while node != to {
            let next = |&&link: &&LinkId| {
                let after = cost[self.hop(link).to];
                after.0 < usize::MAX && over(link, after) == cost[node]
            };
            let &link = self.leaving[node].iter().find(next)?;
            links.push(link);
            node = self.hop(link).to;
        }
        Some(links)
    }
}
