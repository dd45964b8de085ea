//! The keys of router protocols.

use lfn_path::RouterConfig;

use crate::error::ScenarioError;
use crate::model::Router;
use crate::reader::{Item, Table};

fn read_item(item: &Item) -> Result<Router, ScenarioError> {
    let kinds = RouterConfig::kinds().into_iter();
    let names = |config: &RouterConfig| config.keys().keys().into_iter().map(|key| key.name);
    let Some(kind) = item.entry("kind") else {
        let mut any: Vec<_> = kinds.flat_map(|(_, _, config)| names(&config).collect::<Vec<_>>()).collect();
        any.sort_unstable();
        any.dedup();
        return Err(item.table(&any)?.missing("kind", "kind = \"vcp\""));
    };
    let kinds: Vec<_> =
        [("none", None)].into_iter().chain(kinds.map(|(kind, _, config)| (kind, Some(config)))).collect();
    let mut router = kind.word(&kinds)?;
    let keys = ["kind"].into_iter().chain(router.iter().flat_map(names));
    let table = item.table(&keys.collect::<Vec<_>>())?;
    if let Some(config) = &mut router {
        table.read(config.keys_mut())?;
    }
    Ok(Router(router))
}

/// The router of a link's table, `default` where the table has none.
pub(crate) fn read(link: &Table, default: Option<Router>) -> Result<Option<Router>, ScenarioError> {
    Ok(link.get("router").map(|item| read_item(&item)).transpose()?.or(default))
}
