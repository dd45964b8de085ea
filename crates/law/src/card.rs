//! Executes the statements of law cards' vectors; laws/cards/README.md is the language.
//!
//! The sender here is the smallest that can drive a law: it counts, keeps RTTs and does slow start,
//! nothing else.

use crate::{
    Ack, BoxedLaw, Config, Control, Law, LawSpec, Loss, LossKind, PlacedLaw, Probe, Rate, Saved, SlowStart,
    SlowStartKind, Window, WindowLaw, ACK_CWND_LIMITED, ACK_DUP, ACK_FLIGHT, ACK_LOSS, ACK_OPEN,
    ACK_RECOVERY, ACK_ROUND_START, ACK_SACK, PROBES, RATE_APP_LIMITED,
};
use lfn_header::Header;
use std::collections::BTreeMap;

/// The card of laws/slow_start.h, which is not a law but is tested as one.
pub const SLOW_START: &str = "slow-start";

/// A block of vectors, statement by statement.
#[derive(Default)]
pub struct Block {
    subject: Option<Subject>,
    connection: Option<Connection>,
}

impl Block {
    /// A block on this law, which needs no statement `law NAME`.
    pub fn of(law: LawSpec) -> Block {
        Block { subject: Some(Subject::Law(law)), connection: None }
    }

    /// The card to which the block belongs; none before it says so, and none of a prototype.
    pub fn card(&self) -> Option<&str> {
        self.subject.as_ref()?.card()
    }

    /// `cwnd`, `ssthresh` (segments), `pacing_Bps` or a probe of the connection.
    ///
    /// # Errors
    /// When there is no connection yet or no such field.
    pub fn field(&self, name: &str) -> Result<f64, String> {
        self.connection.as_ref().ok_or(NO_CONNECTION)?.field(name)
    }

    /// Executes a statement: its words, without a comment.
    ///
    /// # Errors
    /// Executes a statement; an error names the mistake in it, or the failed expectation.
    pub fn execute(&mut self, words: &[&str]) -> Result<(), String> {
        match (words, self.subject.as_ref()) {
            (["law", name], _) => {
                *self = Block { subject: Some(Subject::parse(name)?), connection: None };
                return Ok(());
            }
            (_, None) => return Err(format!("found {:?}; a block begins with law NAME", words.join(" "))),
            (["start", args @ ..], Some(subject)) => {
                let args = Args::new(
                    args,
                    &[
                        "cwnd",
                        "ssthresh",
                        "slow_start",
                        "saved_window",
                        "saved_rtt",
                        "rtt",
                        "min_rtt",
                        "mss",
                        "now",
                    ],
                )?;
                self.connection = Some(Connection::new(subject, &args)?);
                return Ok(());
            }
            _ => {}
        }
        self.connection.as_mut().ok_or(NO_CONNECTION)?.execute(words)
    }
}

const NO_CONNECTION: &str = "no connection yet; write start cwnd=W before";
const STATEMENTS: &str =
    "ack, sample, rounds N, wait TIME, loss KIND [hold], window W, header PROTOCOL VALUE, open, undo, \
                          restart, expect FIELD VALUE [+-TOL]";
const A_TIME: &str = "write a number with ns, us, ms or s, for example 100ms";

/// A slow start in place of a law: everything an ACK brings is its own.
struct OnlySlowStart(SlowStart);

impl WindowLaw for OnlySlowStart {
    fn on_sample(&mut self, ack: &Ack, control: &mut Control) {
        if ack.flags & ACK_OPEN == 0 {
            self.0.on_recovery(ack, control);
        } else if control.cwnd < control.ssthresh {
            self.0.on_sample(ack, control);
        }
    }

    fn on_ack(&mut self, n: u32, ack: &Ack, control: &mut Control) {
        if control.cwnd < control.ssthresh {
            self.0.on_ack(n, ack, control);
        }
    }
}

impl Law for OnlySlowStart {
    fn on_loss(&mut self, loss: &Loss, control: &mut Control) {
        let ssthresh = control.ssthresh;
        control.ssthresh = (control.cwnd / 2).max(Window::MIN_SSTHRESH);
        self.0.on_loss(loss, ssthresh, control);
    }

    fn on_open(&mut self, _ack: &Ack, control: &mut Control) {
        self.0.on_open(control);
    }
}

enum Subject {
    Law(LawSpec),
    SlowStart(SlowStartKind),
}

impl Subject {
    fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix(SLOW_START) {
            Some(kind) => kind.trim_start_matches(':').parse().map(Self::SlowStart),
            None => text.parse().map(Self::Law),
        }
        .map_err(|e| e.to_string())
    }

    fn card(&self) -> Option<&str> {
        match self {
            Self::Law(spec) => spec.info().map(|law| law.name),
            Self::SlowStart(kind) => Some(card_of(*kind)),
        }
    }
}

/// The card of a slow start: one of its own, if only the simulator runs it.
fn card_of(kind: SlowStartKind) -> &'static str {
    match kind {
        SlowStartKind::Rapid => "slow-start-rapid",
        SlowStartKind::Search => "slow-start-search",
        SlowStartKind::CarefulResume => "slow-start-careful-resume",
        _ => SLOW_START,
    }
}

/// The cards of slow starts.
pub fn slow_start_cards() -> Vec<&'static str> {
    let mut cards: Vec<_> = SlowStartKind::ALL.into_iter().map(card_of).collect();
    cards.dedup();
    cards
}

/// One connection under test.
struct Connection {
    law: PlacedLaw,
    /// Grows the window below ssthresh; none if slow start itself is under test.
    slow_start: Option<SlowStart>,
    probes: Vec<Probe>,
    control: Control,
    before_loss: Control,
    ack: Ack,
    /// The header of each ACK.
    header: Header,
    /// ACK_RECOVERY or ACK_LOSS in an episode, for a law that steers then too.
    episode: u32,
    lost: u64,
}

impl Connection {
    fn new(subject: &Subject, args: &Args) -> Result<Self, String> {
        let cwnd = args.segments("cwnd")?.ok_or("start needs cwnd=W")?;
        let rtt_ns = args.time("rtt")?.unwrap_or(100_000_000);
        let config = Config {
            now_ns: args.time("now")?.unwrap_or(1_000_000_000),
            mss_B: args.count("mss")?.unwrap_or(1448),
            ..Config::default()
        };
        let ack = Ack {
            now_ns: config.now_ns,
            rtt_ns,
            srtt_ns: rtt_ns,
            min_rtt_ns: args.time("min_rtt")?.unwrap_or(rtt_ns),
            mss_B: config.mss_B,
            ..Ack::default()
        };
        let ssthresh = args.segments("ssthresh")?.unwrap_or(cwnd);
        let mut control = Control { cwnd, ssthresh, pacing_Bps: 0, next_tick_ns: 0, block: 0, blocks: 0 };
        let (law, slow_start, probes) = match subject {
            Subject::Law(spec) => (
                spec.build(&config, &mut control),
                Some(SlowStart::with(args.slow_start()?, args.saved()?)),
                spec.probes().to_vec(),
            ),
            Subject::SlowStart(kind) => {
                let law = BoxedLaw::Window(Box::new(OnlySlowStart(SlowStart::with(*kind, args.saved()?))));
                (law.into(), None, Vec::new())
            }
        };
        let header = Header::None;
        Ok(Self { law, slow_start, probes, control, before_loss: control, ack, header, episode: 0, lost: 0 })
    }

    fn wait(&mut self, time_ns: u64) {
        self.ack.now_ns += time_ns;
        while (1..=self.ack.now_ns).contains(&self.control.next_tick_ns) {
            let at_ns = std::mem::take(&mut self.control.next_tick_ns);
            self.law.on_tick(at_ns, &mut self.control);
        }
    }

    /// An ACK of `n` segments; `flags` without ACK_OPEN makes it a mere sample.
    fn receive(&mut self, n: u32, flags: u32) {
        let open = flags & ACK_OPEN != 0;
        let ack = &mut self.ack;
        ack.min_rtt_ns = ack.min_rtt_ns.min(ack.rtt_ns);
        ack.srtt_ns = ack.srtt_ns - ack.srtt_ns / 8 + ack.rtt_ns / 8;
        ack.delivered += u64::from(n);
        ack.acked = if open { n } else { 0 };
        ack.newly_delivered = n;
        ack.inflight = (self.control.cwnd.floor() as u32).saturating_sub(n);
        ack.flags = flags;
        if let Some(law) = self.law.router().filter(|_| !self.header.is_none()) {
            law.header(&self.control, self.ack.mss_B);
            law.on_header(self.header, &mut self.control);
        }
        let Some(mut law) = self.law.window() else { return };
        law.on_sample(&self.ack, &mut self.control);
        if !open {
            if let Some(slow_start) = &mut self.slow_start {
                slow_start.on_recovery(&self.ack, &mut self.control);
            }
            return;
        }
        let mut rest = n;
        if let Some(slow_start) = &mut self.slow_start {
            if self.control.cwnd < self.control.ssthresh {
                slow_start.on_sample(&self.ack, &mut self.control);
            }
            if self.control.cwnd < self.control.ssthresh {
                rest = slow_start.on_ack(n, &self.ack, &mut self.control);
            }
        }
        if rest > 0 {
            law.on_ack(rest, &self.ack, &mut self.control);
        }
    }

    /// An ACK of `n` segments, the newest of them sent one RTT ago, for a law with delivery rates.
    fn steer(&mut self, args: &Args, n: u32, flags: u32) -> Result<(), String> {
        let window = self.control.cwnd.floor() as u32;
        let sampled = args.count("sampled")?.unwrap_or(window);
        let ack = &mut self.ack;
        ack.delivered += u64::from(n);
        (ack.acked, ack.newly_delivered) = (n, n);
        ack.newly_lost = args.count("lost")?.unwrap_or(0);
        ack.ce = args.count("marked")?.unwrap_or(0);
        ack.inflight = args.count("inflight")?.unwrap_or(window.saturating_sub(n));
        ack.flags = self.episode | if self.episode == 0 { flags } else { 0 };
        let mut rate = Rate {
            delivered: ack.delivered,
            prior_delivered: ack.delivered.saturating_sub(u64::from(sampled)),
            prior_lost: self.lost,
            interval_ns: ack.rtt_ns,
            tx_in_flight: args.count("sent_at")?.unwrap_or(window),
            prior_inflight: ack.inflight + n,
            flags: if args.count("limited")?.unwrap_or(0) > 0 { RATE_APP_LIMITED } else { 0 },
            lost: self.lost,
            pad: 0,
        };
        if let Some(law) = self.law.controller() {
            for _ in 0..ack.newly_lost {
                rate.lost += 1;
                law.on_lost(ack.now_ns, &rate, &self.control);
            }
            law.on_control(&self.ack, &rate, &mut self.control);
        }
        self.lost = rate.lost;
        Ok(())
    }

    fn acks(&mut self, args: &Args, flags: u32) -> Result<(), String> {
        let every_ns = args.time("every")?.unwrap_or(0);
        if let Some(rtt_ns) = args.time("rtt")? {
            self.ack.rtt_ns = rtt_ns;
        }
        let n = args.count("n")?.unwrap_or(1);
        for _ in 0..args.count("x")?.unwrap_or(1) {
            self.wait(every_ns);
            self.ack.newly_lost = args.count("lost")?.unwrap_or(0);
            if self.law.is_controller() {
                self.steer(args, n, flags)?;
            } else {
                self.receive(n, flags);
            }
        }
        Ok(())
    }

    fn round(&mut self) {
        let count = self.control.cwnd.floor().max(1);
        for i in 0..count {
            // Spread so that the round takes one RTT to the nanosecond.
            let at = |i: u64| (u128::from(self.ack.rtt_ns) * u128::from(i) / u128::from(count)) as u64;
            self.wait(at(i + 1) - at(i));
            let start = if i == 0 { ACK_ROUND_START | ACK_FLIGHT } else { 0 };
            self.receive(1, ACK_OPEN | ACK_CWND_LIMITED | start);
        }
    }

    fn lose(&mut self, kind: LossKind, hold: bool) {
        let ack = &self.ack;
        let loss = Loss {
            now_ns: ack.now_ns,
            rtt_ns: ack.rtt_ns,
            srtt_ns: ack.srtt_ns,
            min_rtt_ns: ack.min_rtt_ns,
            kind,
            inflight: self.control.cwnd.floor() as u32,
            mss_B: ack.mss_B,
            pad: 0,
        };
        self.before_loss = self.control;
        self.law.on_loss(&loss, &mut self.control);
        if let Some(slow_start) = &mut self.slow_start {
            slow_start.on_loss(&loss, self.before_loss.ssthresh, &mut self.control);
        }
        if self.law.is_controller() {
            self.episode = if kind == LossKind::Rto { ACK_LOSS } else { ACK_RECOVERY };
            if kind == LossKind::Rto {
                self.control.cwnd = Window::ONE;
            }
            return;
        }
        let cwnd = if kind == LossKind::Rto { Window::ONE } else { self.control.ssthresh };
        self.control.cwnd = self.control.cwnd.min(cwnd);
        if !hold {
            self.open();
        }
    }

    fn open(&mut self) {
        self.ack.flags = ACK_OPEN;
        self.episode = 0;
        self.law.on_open(&self.ack, &mut self.control);
        if let Some(slow_start) = &mut self.slow_start {
            slow_start.on_open(&mut self.control);
        }
    }

    fn undo(&mut self) {
        self.control.cwnd = self.before_loss.cwnd;
        self.control.ssthresh = self.before_loss.ssthresh;
        self.law.on_undo(&mut self.control);
    }

    fn field(&self, name: &str) -> Result<f64, String> {
        match name {
            "cwnd" => return Ok(self.control.cwnd.segments()),
            "ssthresh" => return Ok(self.control.ssthresh.segments()),
            "pacing_Bps" => return Ok(self.control.pacing_Bps as f64),
            _ => {}
        }
        let index = self.probes.iter().position(|probe| probe.name == name).ok_or_else(|| {
            let probes: Vec<_> = self.probes.iter().map(|probe| &probe.name).collect();
            format!("no field {name:?}; allowed: cwnd, ssthresh, pacing_Bps and the probes {probes:?}")
        })?;
        let mut out = [0; PROBES];
        self.law.probe(&self.control, &mut out);
        Ok(out[index] as f64 / 2f64.powi(self.probes[index].scale as i32))
    }

    fn expect(&self, words: &[&str]) -> Result<(), String> {
        let (field, wanted, tolerance) = match words {
            [field, wanted] => (field, wanted, None),
            [field, wanted, tolerance] => (field, wanted, Some(tolerance)),
            _ => return Err(format!("expect {}; write expect FIELD VALUE [+-TOL]", words.join(" "))),
        };
        let found = self.field(field)?;
        let value = number(wanted)?;
        let right = match tolerance {
            None => {
                let digits = wanted.split_once('.').map_or(0, |(_, fraction)| fraction.len());
                format!("{found:.digits$}") == *wanted
            }
            Some(text) => {
                let wrong = || format!("{text:?} is not a tolerance; write for example +-0.5 or +-2%");
                let text = text.strip_prefix("+-").ok_or_else(wrong)?;
                let bound = match text.strip_suffix('%') {
                    Some(percent) => number(percent)? / 100.0 * value.abs(),
                    None => number(text)?,
                };
                (found - value).abs() <= bound
            }
        };
        if right {
            return Ok(());
        }
        Err(format!("{field}: expected {}, found {found}", words[1..].join(" ")))
    }

    fn execute(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            ["ack", args @ ..] => {
                let mut keys = vec!["n", "x", "every", "rtt"];
                if self.law.is_controller() {
                    keys.extend(["sampled", "lost", "marked", "inflight", "sent_at", "limited"]);
                }
                self.acks(&Args::new(args, &keys)?, ACK_OPEN | ACK_CWND_LIMITED)
            }
            ["sample", args @ ..] => {
                self.acks(&Args::new(args, &["n", "x", "every", "rtt", "lost"])?, ACK_DUP | ACK_SACK)
            }
            ["rounds", count] => {
                let wrong = |_| format!("{count:?} is not a number of rounds; allowed: 0 to {}", u32::MAX);
                for _ in 0..count.parse::<u32>().map_err(wrong)? {
                    self.round();
                }
                Ok(())
            }
            ["wait", time] => {
                self.wait(time_ns(time).ok_or_else(|| format!("{time:?} is not a time; {A_TIME}"))?);
                Ok(())
            }
            ["loss", kind, hold @ ..] => {
                let kind = match *kind {
                    "fast" => LossKind::Fast,
                    "rto" => LossKind::Rto,
                    "ecn" => LossKind::Ecn,
                    _ => return Err(format!("no loss {kind:?}; allowed: fast, rto, ecn")),
                };
                let hold = match hold {
                    [] => false,
                    ["hold"] => true,
                    _ => {
                        return Err(format!(
                            "found {:?} after the loss; allowed: hold, or nothing",
                            hold.join(" ")
                        ))
                    }
                };
                self.lose(kind, hold);
                Ok(())
            }
            ["window", window] => {
                let wrong = || format!("{window:?} is no window; allowed: segments of at least 1");
                let window = window.parse::<f64>().ok().filter(|&w| w >= 1.0).ok_or_else(wrong)?;
                self.control.cwnd = Window::of(window);
                self.control.ssthresh =
                    self.control.ssthresh.min(self.control.cwnd).max(Window::MIN_SSTHRESH);
                Ok(())
            }
            ["header", words @ ..] => {
                self.header = Header::of_words(words, self.header)?;
                Ok(())
            }
            ["open"] => {
                self.open();
                Ok(())
            }
            ["undo"] => {
                self.undo();
                Ok(())
            }
            ["restart"] => {
                if let Some(law) = self.law.controller() {
                    law.on_restart(self.ack.now_ns, &mut self.control);
                }
                Ok(())
            }
            ["expect", rest @ ..] => self.expect(rest),
            _ => Err(format!("no statement {:?}; allowed: {STATEMENTS}", words.join(" "))),
        }
    }
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number; write for example 0.5"))
}

/// `key=value` words.
struct Args<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Args<'a> {
    fn new(words: &[&'a str], allowed: &[&str]) -> Result<Self, String> {
        let mut args = BTreeMap::new();
        for word in words {
            let (key, value) = word.split_once('=').ok_or_else(|| {
                format!("{word:?} is not a KEY=VALUE; allowed keys: {}", allowed.join(", "))
            })?;
            if !allowed.contains(&key) {
                return Err(format!("no key {key:?}; allowed: {}", allowed.join(", ")));
            }
            args.insert(key, value);
        }
        Ok(Self(args))
    }

    /// `hint`: the values allowed.
    fn get<T>(&self, key: &str, hint: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, String> {
        let Some(text) = self.0.get(key) else { return Ok(None) };
        parse(text).map(Some).ok_or_else(|| format!("{key}: {text:?}; {hint}"))
    }

    fn count(&self, key: &str) -> Result<Option<u32>, String> {
        self.get(key, "allowed: whole numbers of at least 0", |text| text.parse().ok())
    }

    fn time(&self, key: &str) -> Result<Option<u64>, String> {
        self.get(key, A_TIME, time_ns)
    }

    fn slow_start(&self) -> Result<SlowStartKind, String> {
        let text = self.0.get("slow_start").unwrap_or(&"classic");
        text.parse().map_err(|error: crate::LawError| error.to_string())
    }

    fn saved(&self) -> Result<Option<Saved>, String> {
        let window = self.count("saved_window")?;
        let rtt_ns = self.time("saved_rtt")?;
        Ok(window.zip(rtt_ns).map(|(window_segments, rtt_ns)| Saved {
            window_segments,
            rtt_us: u32::try_from(rtt_ns / 1000).unwrap_or(u32::MAX),
        }))
    }

    fn segments(&self, key: &str) -> Result<Option<Window>, String> {
        self.get(key, "allowed: segments of at least 1, or inf", |text| match text {
            "inf" => Some(Window::INFINITE),
            _ => text.parse::<f64>().ok().filter(|&w| w >= 1.0).map(Window::of),
        })
    }
}

fn time_ns(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let unit_ns = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * unit_ns).round() as u64)
}
