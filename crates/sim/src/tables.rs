//! Columns of a run's results. Names carry the unit; docs/results.md describes them.

/// Sampled senders, one row per flow and sample.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the column's name is its documentation")]
pub struct FlowTable {
    pub t_s: Vec<f64>,
    pub flow: Vec<u32>,
    pub cwnd_seg: Vec<f64>,
    /// Infinite before the first reduction.
    pub ssthresh_seg: Vec<f64>,
    pub srtt_s: Vec<f64>,
    pub rtt_s: Vec<f64>,
    pub inflight_seg: Vec<u32>,
    /// Acknowledged payload since the flow began.
    pub delivered_bytes: Vec<u64>,
    pub retransmits: Vec<u64>,
    pub state: Vec<u8>,
    pub pacing_bps: Vec<f64>,
}

/// Sampled links.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the column's name is its documentation")]
pub struct QueueTable {
    pub t_s: Vec<f64>,
    pub link: Vec<u16>,
    pub packets: Vec<u32>,
    pub bytes: Vec<u64>,
    /// Cumulative from the end of the warm-up, as the next three.
    pub arrivals: Vec<u64>,
    pub drops: Vec<u64>,
    pub marks: Vec<u64>,
    pub sent_bytes: Vec<u64>,
}

/// Losses, timeouts, undo, ends of recovery.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the column's name is its documentation")]
pub struct EventTable {
    pub t_s: Vec<f64>,
    pub flow: Vec<u32>,
    pub kind: Vec<u8>,
    pub cwnd_before_seg: Vec<f64>,
    pub cwnd_after_seg: Vec<f64>,
    pub ssthresh_seg: Vec<f64>,
    pub lost: Vec<u32>,
}

/// The laws' own variables.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the column's name is its documentation")]
pub struct ProbeTable {
    pub t_s: Vec<f64>,
    pub flow: Vec<u32>,
    /// Index in the law's list of probes.
    pub probe: Vec<u8>,
    pub value: Vec<f64>,
}

/// Packets recorded at links.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the column's name is its documentation")]
pub struct PacketTable {
    pub t_ps: Vec<u64>,
    pub link: Vec<u16>,
    /// 0: arrives at the queue; 1: dropped there; 2: its last bit leaves.
    pub point: Vec<u8>,
    /// Number of the connection, or of the UDP source.
    pub flow: Vec<u32>,
    /// 0: data; 1: ACK; 2: UDP; 3: data over UDT; 4: control packet of UDT.
    pub kind: Vec<u8>,
    /// 0: forward; 1: reverse.
    pub direction: Vec<u8>,
    /// Segment number of data, cumulative one of an ACK, the first two words of a control packet
    /// without the bit that says so.
    pub seq: Vec<u64>,
    /// On the wire.
    pub bytes: Vec<u32>,
    pub payload_bytes: Vec<u32>,
    /// 1: retransmission; 2: CE; 4: ECE; 8: CWR.
    pub flags: Vec<u8>,
    /// SACK blocks of an ACK; 0 where there is none.
    pub sack1_start: Vec<u64>,
    pub sack1_end: Vec<u64>,
    pub sack2_start: Vec<u64>,
    pub sack2_end: Vec<u64>,
    pub sack3_start: Vec<u64>,
    pub sack3_end: Vec<u64>,
}

/// Bytes of the columns, which grow alike: by rows that there is room for, and the bytes of a row.
const ROW_BYTES: [usize; 5] = [73, 54, 49, 21, 27];
const PACKET_ROW_BYTES: usize = 82;

impl Tables {
    pub(crate) fn memory_bytes(&self) -> usize {
        let times =
            [&self.flows.t_s, &self.queues.t_s, &self.events.t_s, &self.probes.t_s, &self.transfers.t_s];
        let rows = times.into_iter().zip(ROW_BYTES).map(|(t_s, bytes)| t_s.capacity() * bytes);
        rows.sum::<usize>() + self.packets.memory_bytes()
    }
}

impl PacketTable {
    pub(crate) fn memory_bytes(&self) -> usize {
        self.t_ps.capacity() * PACKET_ROW_BYTES
    }

    /// Brings rows in order of time; those of one instant stay as they are.
    pub(crate) fn sort(&mut self) {
        if self.t_ps.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..self.t_ps.len()).collect();
        order.sort_by_key(|&row| self.t_ps[row]);
        fn reorder<T: Copy>(order: &[usize], columns: &mut [&mut Vec<T>]) {
            for column in columns {
                **column = order.iter().map(|&row| column[row]).collect();
            }
        }
        reorder(&order, &mut [&mut self.link]);
        reorder(&order, &mut [&mut self.point, &mut self.kind, &mut self.direction, &mut self.flags]);
        reorder(&order, &mut [&mut self.flow, &mut self.bytes, &mut self.payload_bytes]);
        reorder(
            &order,
            &mut [
                &mut self.t_ps,
                &mut self.seq,
                &mut self.sack1_start,
                &mut self.sack1_end,
                &mut self.sack2_start,
                &mut self.sack2_end,
                &mut self.sack3_start,
                &mut self.sack3_end,
            ],
        );
    }
}

/// Transfers of models of traffic that began after the warm-up and are done.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the column's name is its documentation")]
pub struct TransferTable {
    /// When the last byte reached the receiver.
    pub t_s: Vec<f64>,
    /// Place of the model among the crowds of the run, the background first.
    pub traffic: Vec<u16>,
    /// 0: forward; 1: reverse.
    pub direction: Vec<u8>,
    pub bytes: Vec<u64>,
    /// From the first byte at the sender until then.
    pub duration_s: Vec<f64>,
}

/// All tables of a run.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// Sampled senders.
    pub flows: FlowTable,
    /// Sampled links.
    pub queues: QueueTable,
    /// Events.
    pub events: EventTable,
    /// Laws' variables.
    pub probes: ProbeTable,
    /// Transfers of models of traffic.
    pub transfers: TransferTable,
    /// Packets, if they were recorded.
    pub packets: PacketTable,
}
