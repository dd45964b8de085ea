//! Changes during the run, and recordings.

use lfn_keys::{entry, keys, Each, File, Given, Kind, Name, Said, Value, Wrong, DELAY_MAX};
use lfn_path::LOSS;
use lfn_sim::config::LinkId;
use lfn_units::{Rate, Time};

const LINK: &str = "write the name of a link";
const LINKS: Each<&str> = Each { what: None, range: LINK };

/// Something changes at a given time.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A link, once.
    Link(LinkChange),
    /// A link, as a file says.
    File(FileChange),
    /// The route of flows.
    Route(RouteChange),
}

keys! {
    /// A link changes.
    pub struct LinkChange {
        /// When, before the end of the run.
        at: Time, like "at = \"30s\"";
        /// Which link: in a dumbbell "forward" or "reverse".
        link: String, in LINK, like "link = \"forward\"";
        /// Its new rate: 0bit/s, or 1kbit/s to 10Tbit/s. The rest of the packet in service is sent at this rate
        /// too.
        rate: Option<Rate> = None;
        /// Its new delay, for packets that leave the link later. If it is shorter, they overtake earlier packets.
        delay: Option<Time> = None, in Time::ZERO..=DELAY_MAX;
        /// Its new probability of loss, in place of whatever loss it had.
        loss: Option<f64> = None, in LOSS;
        /// true: the link sends nothing until a later entry changes this. false: it has its last rate again. Not
        /// with `rate`.
        down: Option<bool> = None;
    }
    set {
        /// Number of the link.
        number: LinkId = LinkId(0);
    }
}

keys! {
    /// A link changes as a file says.
    pub struct FileChange {
        /// Which link.
        link: String, in LINK, like "link = \"forward\"";
        /// A file whose first line is `time,rate`, `time,delay` or `time,loss`, and each further line a time and a
        /// value with their units (`1.5s,20Mbit/s`), in order of time; or a table of its `path` and `hash`. Times after
        /// the end of the run do not count.
        file: File, like "file = \"rates.csv\"";
    }
    set {
        /// Contents of the file.
        series: Series = Series::default();
        /// Number of the link.
        number: LinkId = LinkId(0);
    }
}

/// Contents of a file of changes of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Series {
    /// Rates.
    Rate(Vec<(Time, Rate)>),
    /// Delays.
    Delay(Vec<(Time, Time)>),
    /// Probabilities of loss.
    Loss(Vec<(Time, f64)>),
}

impl Default for Series {
    fn default() -> Series {
        Series::Rate(Vec::new())
    }
}

keys! {
    /// The flows of a group change their route. Packets in flight stay on the old route.
    pub struct RouteChange {
        /// When, before the end of the run.
        at: Time, like "at = \"30s\"";
        /// Index or name of a group of flows.
        flow: FlowId, like "flow = 0";
        /// The new links of its data. Default: as before.
        route: Vec<String> = Vec::new(), in LINKS;
        /// The new links of its ACKs. Default: the opposite direction of `route`, as for a flow.
        ack_route: Vec<String> = Vec::new(), in LINKS;
    }
    set {
        /// Index of the group.
        group: usize = 0;
        /// The links of both routes.
        links: [Vec<LinkId>; 2] = Default::default();
    }
}

/// A group of flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowId {
    /// By its index from 0.
    Index(u32),
    /// By its name.
    Name(Name),
}

impl Default for FlowId {
    fn default() -> FlowId {
        FlowId::Index(0)
    }
}

impl Value for FlowId {
    type Range = ();
    const ANY: () = ();

    /// Which group it is, and whether there is such a group, is known once all flows are read.
    fn read(given: &Given, (): &()) -> Result<FlowId, Wrong> {
        match given {
            Given::Text(_) => Name::read(given, &()).map(FlowId::Name),
            _ => Ok(FlowId::default()),
        }
    }

    fn said(&self) -> Said {
        match self {
            FlowId::Index(index) => Said::Integer((*index).into()),
            FlowId::Name(name) => name.said(),
        }
    }

    fn kind((): &()) -> Kind {
        let kinds = vec![("By its index from 0.", u32::kind(&u32::ANY)), ("By its name.", Name::kind(&()))];
        Kind::Either("FlowId", "A group of flows.", kinds)
    }
}

impl Value for Change {
    type Range = ();
    const ANY: () = ();
    const TABLE: bool = true;

    fn read(given: &Given, (): &()) -> Result<Change, Wrong> {
        let entries = given.entries()?;
        if entry(entries, "file").is_some() {
            return FileChange::read(given, &()).map(Change::File);
        }
        match entry(entries, "flow") {
            Some(_) => RouteChange::read(given, &()).map(Change::Route),
            None => LinkChange::read(given, &()).map(Change::Link),
        }
    }

    fn said(&self) -> Said {
        match self {
            Change::Link(change) => change.said(),
            Change::File(change) => change.said(),
            Change::Route(change) => change.said(),
        }
    }

    fn kind((): &()) -> Kind {
        let kinds = vec![
            ("A link, once.", LinkChange::kind(&())),
            ("A link, as a file says.", FileChange::kind(&())),
            ("The route of flows.", RouteChange::kind(&())),
        ];
        Kind::Either("Change", "Something changes at a given time.", kinds)
    }
}

keys! {
    /// Recording of packets.
    pub struct Capture {
        /// On these links. Default: on all.
        links: Vec<String> = Vec::new(), in LINKS;
        /// From this time.
        from: Time = Time::ZERO;
        /// Until just before this time. Default: the end of the run.
        to: Time = Time::NEVER;
        /// At most so many packets.
        max_rows: u64 = 1_000_000, in 1..=1_000_000_000;
    }
    set {
        /// Numbers of the links.
        numbers: Vec<LinkId> = Vec::new();
    }
}
