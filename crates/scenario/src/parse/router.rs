//! The keys of routers that speak.

use lfn_keys::Span;
use lfn_units::Time;

use super::{DELAY_MAX, FRACTION, PROBABILITY};
use crate::error::ScenarioError;
use crate::model::{JetMax, Rcp, Router, Silent, Vcp, VcpCompat, Xcp};
use crate::quantity::Text;
use crate::reader::{Choice, Item, Table};

pub(crate) const NONE: &[&str] = &["kind"];
pub(crate) const VCP: &[&str] = &["kind", "gamma", "compat"];
pub(crate) const GAINS: &[&str] = &["kind", "alpha", "beta", "gamma"];
pub(crate) const JETMAX: &[&str] = &["kind", "gamma", "interval"];
/// Keys of some kind.
const ANY: &[&str] = &["alpha", "beta", "gamma", "compat", "interval"];

#[derive(Clone, Copy)]
enum Kind {
    None,
    Vcp,
    Xcp,
    Rcp,
    JetMax,
}

impl Choice for Kind {
    const ALL: &'static [(&'static str, Self)] = &[
        ("none", Self::None),
        ("vcp", Self::Vcp),
        ("xcp", Self::Xcp),
        ("rcp", Self::Rcp),
        ("jetmax", Self::JetMax),
    ];
}
impl Choice for VcpCompat {
    const ALL: &'static [(&'static str, Self)] = &[("paper", Self::Paper), ("author", Self::Author)];
}

fn read_item(item: &Item) -> Result<Router, ScenarioError> {
    let Some(kind) = item.entry("kind") else {
        return Err(item.table(ANY)?.missing("kind", "kind = \"vcp\""));
    };
    Ok(match kind.choice()? {
        Kind::None => {
            item.table(NONE)?;
            Router::None(Silent {})
        }
        Kind::Vcp => {
            let table = item.table(VCP)?;
            let compat = table.choice("compat", VcpCompat::Paper)?;
            if compat == VcpCompat::Author && table.get("gamma").is_some() {
                let hint = "write one of both: the author's code steers gamma itself";
                return Err(table.error("gamma", "found beside compat = \"author\"", hint));
            }
            Router::Vcp(Vcp { gamma: table.number("gamma", 0.98, FRACTION)?, compat })
        }
        Kind::Xcp => {
            let table = item.table(GAINS)?;
            Router::Xcp(Xcp {
                alpha: gain(&table, "alpha", 0.4)?,
                beta: gain(&table, "beta", 0.226)?,
                gamma: table.number("gamma", 0.1, PROBABILITY)?,
            })
        }
        Kind::Rcp => {
            let table = item.table(GAINS)?;
            Router::Rcp(Rcp {
                alpha: gain(&table, "alpha", 0.4)?,
                beta: gain(&table, "beta", 0.4)?,
                gamma: table.number("gamma", 1.0, FRACTION)?,
            })
        }
        Kind::JetMax => {
            let table = item.table(JETMAX)?;
            let interval = table.quantity_in("interval", Time::from_ms(1)..=DELAY_MAX)?;
            Router::JetMax(JetMax {
                gamma: table.number("gamma", 0.95, FRACTION)?,
                interval: Text(interval.unwrap_or(Time::from_ms(100))),
            })
        }
    })
}

fn gain(table: &Table, key: &str, default: f64) -> Result<f64, ScenarioError> {
    table.number(key, default, Span::at_least(0.0))
}

/// The router of a link's table, `default` where the table has none.
pub(crate) fn read(link: &Table, default: Option<Router>) -> Result<Option<Router>, ScenarioError> {
    Ok(link.get("router").map(|item| read_item(&item)).transpose()?.or(default))
}
