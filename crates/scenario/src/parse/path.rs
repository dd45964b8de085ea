//! Where traffic goes: the keys `from`, `to`, `via`, `route`, `ack_route`, `direction`.

use lfn_keys::Name;
use lfn_sim::config::LinkId;
use lfn_sim::traffic::Direction;

use crate::error::ScenarioError;
use crate::model::{Path, Topology};
use crate::network::{BadRoute, Network};
use crate::reader::{Item, Table};

/// The network as the texts of a scenario name its parts.
pub(crate) struct Places<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) network: &'a Network<'a>,
}

impl Places<'_> {
    /// The number of a link that a text names.
    pub(crate) fn link(&self, item: &Item) -> Result<LinkId, ScenarioError> {
        let name = item.text();
        item.one_of("link", name, |name| self.network.link(name), self.network.link_names())
    }

    fn node(&self, item: &Item) -> Result<(Name, usize), ScenarioError> {
        let name: Name = item.value(&())?;
        let number =
            item.one_of("node", &name.0, |name| self.network.node(name), self.network.node_names())?;
        Ok((name, number))
    }

    fn name(&self, node: usize) -> &str {
        self.network.node_name(node)
    }

    /// A route as it is written, and its links, which follow each other; empty if it is not written.
    pub(crate) fn route(
        &self,
        table: &Table,
        key: &str,
    ) -> Result<(Vec<String>, Vec<LinkId>), ScenarioError> {
        let items = table.items(key);
        let links = items.iter().map(|item| self.link(item)).collect::<Result<Vec<_>, _>>()?;
        if links.is_empty() && table.get(key).is_some() {
            return Err(table.error(key, "no link", "write the names of links, or leave it out"));
        }
        self.network.check(&links).map_err(|bad| self.bad_route(table, key, &bad))?;
        let names = links.iter().map(|&link| self.network.hop(link).name.clone()).collect();
        Ok((names, links))
    }

    fn bad_route(&self, table: &Table, key: &str, bad: &BadRoute) -> ScenarioError {
        let link = |link| &self.network.hop(link).name;
        let ends = |link| self.network.ends(&[link]);
        match *bad {
            BadRoute::Gap { next, before } => {
                let (begins, ended) = (self.name(ends(next).0), self.name(ends(before).1));
                let found =
                    format!("{} begins at {begins}, but {} ends at {ended}", link(next), link(before));
                table.error(key, found, "a link begins where the one before it ends")
            }
            BadRoute::Loop { last } => {
                let node = self.name(ends(last).1);
                let found = format!("a loop: {} comes to {node} for the second time", link(last));
                table.error(key, found, "a route passes each node once")
            }
        }
    }

    /// Which way, and by which links.
    pub(crate) fn path(&self, table: &Table) -> Result<(Direction, Path), ScenarioError> {
        let said = table.value_in("direction", &())?;
        let towards = said.unwrap_or(Direction::Forward);
        if matches!(self.topology, Topology::Dumbbell(_)) {
            let keys = ["from", "to", "via", "route", "ack_route"];
            if let Some(key) = keys.into_iter().find(|key| table.get(key).is_some()) {
                let hint = "a dumbbell has no nodes; write direction = \"reverse\" for the other way";
                return Err(table.error(key, "found in a dumbbell", hint));
            }
            let links = vec![LinkId((towards == Direction::Reverse).into())];
            return Ok((towards, Path { links, ..Path::default() }));
        }
        let (route, links) = self.route(table, "route")?;
        let via = table.items("via");
        if !via.is_empty() && !links.is_empty() {
            return Err(table.error("via", "found beside route", "write one of both"));
        }
        let via = via.iter().map(|item| self.node(item)).collect::<Result<Vec<_>, _>>()?;
        let (from, to) = self.path_ends(table, towards, &links)?;
        let links = if links.is_empty() {
            let stops: Vec<usize> = via.iter().map(|&(_, node)| node).chain([to]).collect();
            self.through(table, from, &stops)?
        } else {
            links
        };
        let mut direction = towards;
        if matches!(self.topology, Topology::ParkingLot(_)) {
            direction = if from < to { Direction::Forward } else { Direction::Reverse };
            if said.is_some_and(|said| said != direction) {
                let found = format!("found beside a route from {} to {}", self.name(from), self.name(to));
                return Err(table.error("direction", found, "leave it out"));
            }
        }
        let via = via.into_iter().map(|(name, _)| name).collect();
        let [from, to] = [from, to].map(|node| Some(Name(self.name(node).into())));
        Ok((direction, Path { from, to, via, route, links }))
    }

    /// The nodes where a path begins and ends.
    fn path_ends(
        &self,
        table: &Table,
        towards: Direction,
        route: &[LinkId],
    ) -> Result<(usize, usize), ScenarioError> {
        let said = |key| table.get(key).map(|item| self.node(&item)).transpose();
        let (from, to) = (said("from")?.map(|(_, node)| node), said("to")?.map(|(_, node)| node));
        let default = match self.topology {
            _ if !route.is_empty() => Some(self.network.ends(route)),
            Topology::ParkingLot(lot) if towards == Direction::Forward => Some((0, lot.hops as usize)),
            Topology::ParkingLot(lot) => Some((lot.hops as usize, 0)),
            _ => None,
        };
        let need = |key| table.missing(key, &format!("{key} = \"{}\"", self.name(0)));
        let from = from.or(default.map(|ends| ends.0)).ok_or_else(|| need("from"))?;
        let to = to.or(default.map(|ends| ends.1)).ok_or_else(|| need("to"))?;
        if !route.is_empty() {
            self.check_ends(table, "route", route, (from, to))?;
        }
        if from == to {
            let key = if table.get("to").is_some() { "to" } else { "from" };
            return Err(table.error(key, format!("{} is both ends", self.name(to)), "name another node"));
        }
        Ok((from, to))
    }

    /// Checks that a route leads where it should.
    pub(crate) fn check_ends(
        &self,
        table: &Table,
        key: &str,
        links: &[LinkId],
        wanted: (usize, usize),
    ) -> Result<(), ScenarioError> {
        let ends = self.network.ends(links);
        if ends == wanted {
            return Ok(());
        }
        let found = format!("it leads from {} to {}", self.name(ends.0), self.name(ends.1));
        let hint = format!("from {} to {} is wanted", self.name(wanted.0), self.name(wanted.1));
        Err(table.error(key, found, hint))
    }

    /// The shortest path to each of these nodes in turn.
    fn through(&self, table: &Table, from: usize, stops: &[usize]) -> Result<Vec<LinkId>, ScenarioError> {
        let key = if table.get("via").is_some() { "via" } else { "to" };
        let (mut links, mut at) = (Vec::new(), from);
        for &stop in stops {
            let found = || format!("no path from {} to {}", self.name(at), self.name(stop));
            let part = self.network.shortest(at, stop);
            links.extend(part.ok_or_else(|| table.error(key, found(), "add links that join them"))?);
            at = stop;
        }
        self.network.check(&links).map_err(|bad| self.bad_route(table, key, &bad))?;
        Ok(links)
    }

    /// The way back of these links: as written, else their opposite directions, else the shortest.
    pub(crate) fn back(
        &self,
        table: &Table,
        links: &[LinkId],
    ) -> Result<(Vec<String>, Vec<LinkId>), ScenarioError> {
        let (begin, end) = self.network.ends(links);
        let (names, back) = self.route(table, "ack_route")?;
        if !back.is_empty() {
            self.check_ends(table, "ack_route", &back, (end, begin))?;
            return Ok((names, back));
        }
        let back = self.network.opposite(links).or_else(|| self.network.shortest(end, begin));
        let found = || format!("no path from {} back to {}", self.name(end), self.name(begin));
        let back = back.ok_or_else(|| table.error("ack_route", found(), "add links that join them"))?;
        Ok((names, back))
    }
}
