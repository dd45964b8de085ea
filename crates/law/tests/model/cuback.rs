//! CUBACK against the draft's second vector and a model in floating point.

use lfn_law::{Ack, Config, Control, LawSpec, Loss, LossKind, PlacedLaw, Window, ACK_CWND_LIMITED, ACK_OPEN};

/// A connection at `epoch` segments after a loss at `prior`, RTT 100 ms.
fn after_loss(prior: u64, epoch: u64) -> (PlacedLaw, Control) {
    let mut control = Control::new(prior as u32);
    let law: LawSpec = "cuback".parse().unwrap();
    let mut law = law.build(&Config { mss_B: 1448, ..Config::default() }, &mut control);
    let loss = Loss { kind: LossKind::Fast, srtt_ns: 100_000_000, mss_B: 1448, ..Loss::default() };
    law.on_loss(&loss, &mut control);
    control.cwnd = Window::whole(epoch);
    (law, control)
}

/// Segments acknowledged one by one until the window is at each of `windows`.
fn acknowledged(prior: u64, epoch: u64, windows: &[u64]) -> Vec<f64> {
    let (mut law, mut control) = after_loss(prior, epoch);
    let ack = Ack { srtt_ns: 100_000_000, mss_B: 1448, flags: ACK_OPEN | ACK_CWND_LIMITED, ..Ack::default() };
    let mut acks = 0.0;
    let reach = |&window: &u64| {
        while control.cwnd < Window::whole(window) {
            law.window().unwrap().on_ack(1, &ack, &mut control);
            acks += 1.0;
        }
        acks
    };
    windows.iter().map(reach).collect()
}

/// A(w) of the draft.
fn model(prior: f64, epoch: f64, w: f64) -> f64 {
    let cubic = prior / 0.1 * (((prior - epoch) / 0.4).cbrt() + ((w - prior) / 0.4).cbrt());
    let sum = |w: f64, from: f64| (w - from) * (w + from - 1.0) / 2.0;
    let reno = sum(w.min(prior), epoch) * 17.0 / 9.0 + if w > prior { sum(w, prior) } else { 0.0 };
    cubic.min(reno)
}

#[test]
fn the_second_vector_of_the_draft_holds() {
    let wanted = [50_000.0, 100_000.0, 150_000.0, 200_000.0];
    let found = acknowledged(1000, 600, &[950, 1000, 1050, 1400]);
    for (found, wanted) in found.into_iter().zip(wanted) {
        // Whole segments are acknowledged, and D is at least 2.
        assert!((found - wanted).abs() < 0.001 * wanted, "{found} {wanted}");
    }
}

#[test]
fn growth_follows_the_model_to_a_hundredth() {
    for (prior, epoch) in [(10, 7), (100, 70), (300, 210), (1000, 700), (20_000, 14_000)] {
        let windows = [epoch + (prior - epoch) / 2, prior, prior + prior / 5];
        for (found, w) in acknowledged(prior, epoch, &windows).into_iter().zip(windows) {
            let wanted = model(prior as f64, epoch as f64, w as f64);
            assert!((found - wanted).abs() < 0.01 * wanted + 2.0, "{prior} at {w}: {found} {wanted}");
        }
    }
}
