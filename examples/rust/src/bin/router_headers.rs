//! A router protocol by hand: three flows of XCP send at fixed rates over a link that could carry more, and its router
//! writes into each packet's header how much the flow may change its rate.

use lfn_header::xcp::Xcp;
use lfn_header::Header;
use lfn_path::{RouterConfig, XcpConfig};
use lfn_units::{Rate, Time};

const RTT_S: f64 = 0.1;
const PACKET_BYTES: u32 = 1500;
/// Milliseconds between two packets of each flow: 0.6, 1.2 and 6 of the link's 12 Mbit/s.
const GAPS_MS: [u64; 3] = [20, 10, 2];

fn main() {
    let config = RouterConfig::Xcp(XcpConfig::default());
    let mut router = config.build(1, Rate(12_000_000), || 0.5);
    let mut granted = [0.0; GAPS_MS.len()];
    for ms in 0..1000 {
        let now = Time::from_ms(ms);
        for (flow, gap_ms) in GAPS_MS.into_iter().enumerate().filter(|(_, gap_ms)| ms % gap_ms == 0) {
            router.advance(now, 0); // no packet waits
            let gap_s = gap_ms as f64 / 1e3;
            // The sender asks for more than there is.
            let mut header = Header::Xcp(Xcp { gap_s, rtt_s: RTT_S, delta_bytes_per_s: 1e9 });
            router.arrive(PACKET_BYTES, &header);
            router.depart(PACKET_BYTES, 0, &mut header);
            if let Header::Xcp(answer) = header {
                granted[flow] += answer.delta_bytes_per_s;
            }
        }
    }
    for (gap_ms, delta) in GAPS_MS.iter().zip(granted) {
        let rate = 8.0 * f64::from(PACKET_BYTES) / (*gap_ms as f64 * 1e3);
        let delta = 8.0 * delta / 1e6 * RTT_S;
        println!("a flow of {rate:.1} Mbit/s: {delta:+.3} Mbit/s a round trip");
    }
}
