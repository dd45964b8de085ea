//! Laws on the fluid path: what follows from their definitions by hand.

use lfn_law::fluid::{course, Course, FluidError, Path};

/// 1000 segments without a queue, 100 ms.
fn link(buffer: f64) -> Path {
    Path {
        rate_per_s: 1e4,
        buffer,
        base_rtts_s: vec![0.1],
        least_rtt: 1.0,
        segments_to_loss: f64::INFINITY,
        window_at_loss: f64::INFINITY,
    }
}

fn of(law: &str, path: &Path, window: f64, losses: usize) -> Result<Course, FluidError> {
    course(&[law.parse().unwrap()], path, &[window], losses, || true)
}

#[test]
fn reno_takes_half_its_window_in_round_trips_and_fills_three_quarters() {
    let found = of("reno", &link(0.0), 999.0, 4).unwrap();
    let last = &found.epochs[3];
    assert!(last.lost);
    // It is seen at the next of sixteen ACKs.
    assert!((1000.0..1000.15).contains(&last.before[0]), "{}", last.before[0]);
    assert!((last.after[0] - last.before[0] / 2.0).abs() < 1e-6);
    let seconds = last.end_s - last.start_s;
    assert!((seconds - 50.0).abs() < 0.05, "{seconds}");
    assert!((last.packets[0] / (1e4 * seconds) - 0.75).abs() < 1e-3);
    assert!((last.growth[0] - 1.0).abs() < 0.07, "{}", last.growth[0]);
    assert_eq!(found.windows.len(), found.t_s.len());
    assert!(found.t_s.windows(2).all(|pair| pair[0] <= pair[1]));
}

#[test]
fn a_queue_fills_the_link_and_lengthens_round_trips() {
    let last = of("reno", &link(1000.0), 1999.0, 4).unwrap().epochs.pop().unwrap();
    let (seconds, delivered) = (last.end_s - last.start_s, last.packets[0]);
    assert!((delivered / (1e4 * seconds) - 1.0).abs() < 1e-4);
    // Evenly from 1000 to 2000 in round trips, which grow as the window does: 14/9 of 1000 by time.
    let mean = last.window_s[0] / seconds;
    assert!((mean - 1555.6).abs() < 2.0, "{mean}");
}

#[test]
fn losses_cease_where_delay_steers() {
    let found = of("vegas", &link(1000.0), 500.0, 100).unwrap();
    assert!(found.epochs.iter().all(|epoch| !epoch.lost));
    let window = found.epochs.last().unwrap().after[0];
    assert!((1002.0..=1004.0).contains(&window), "{window}");
}

#[test]
fn no_loss_ends_the_growth_of_bbr_without_a_link() {
    let path = Path { rate_per_s: f64::INFINITY, segments_to_loss: 1e4, ..link(0.0) };
    assert_eq!(of("bbr", &path, 100.0, 1000).err(), Some(FluidError::Unbounded(0)));
    let mut asked = 0;
    let stopped = course(&["reno".parse().unwrap()], &path, &[100.0], usize::MAX, || {
        asked += 1;
        asked < 3
    });
    assert_eq!(stopped.err(), Some(FluidError::Stopped));
}
