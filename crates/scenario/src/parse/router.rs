//! The keys of routers that speak.

use super::{is_fraction, FRACTION};
use crate::error::ScenarioError;
use crate::model::{Router, Silent, Vcp, VcpCompat};
use crate::reader::{Choice, Item, Table};

pub(crate) const NONE: &[&str] = &["kind"];
pub(crate) const VCP: &[&str] = &["kind", "gamma", "compat"];
/// Keys of some kind.
const ANY: &[&str] = &["gamma", "compat"];

#[derive(Clone, Copy)]
enum Kind {
    None,
    Vcp,
}

impl Choice for Kind {
    const ALL: &'static [(&'static str, Self)] = &[("none", Self::None), ("vcp", Self::Vcp)];
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
            Router::Vcp(Vcp { gamma: table.number("gamma", 0.98, FRACTION, is_fraction)?, compat })
        }
    })
}

/// The router of a link's table, `default` where the table has none.
pub(crate) fn read(link: &Table, default: Option<Router>) -> Result<Option<Router>, ScenarioError> {
    Ok(link.get("router").map(|item| read_item(&item)).transpose()?.or(default))
}
