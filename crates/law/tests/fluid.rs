//! Laws on the fluid path: what follows from their definitions by hand.

use lfn_law::fluid::{course, sawtooth, Course, Detail, FluidError, Path};

/// 1000 segments without a queue, 100 ms.
fn link(buffer: f64) -> Path {
    Path {
        rate_per_s: 1e4,
        buffer,
        base_rtts_s: vec![0.1],
        least_rtt: 1.0,
        segments_to_loss: f64::INFINITY,
        window_at_loss: f64::INFINITY,
        detail: Detail::FINE,
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

/// In numbers alone a course is coarser: the mean window to 2 %, the period to 5 %.
#[test]
fn a_brief_course_is_near_the_fine_one() {
    for law in ["reno", "cubic", "htcp", "westwood", "hstcp", "scalable", "htcp-be"] {
        for (rate_per_s, rtt_s, buffer) in [(1e3, 0.05, 20.0), (1e4, 0.1, 1000.0), (1e5, 0.2, 5000.0)] {
            let spec = law.parse().unwrap();
            let brief = sawtooth(&spec, rate_per_s, rtt_s, buffer, || true).unwrap();
            let path = Path { rate_per_s, base_rtts_s: vec![rtt_s], ..link(buffer) };
            let fine = of(law, &path, 0.999 * (rate_per_s * rtt_s + buffer), 20).unwrap();
            let last = &fine.epochs[10..];
            let sum = |of: fn(&lfn_law::fluid::Epoch) -> f64| last.iter().map(of).sum::<f64>();
            let seconds = sum(|epoch| epoch.end_s - epoch.start_s);
            for (name, ours, theirs, within) in [
                ("window", brief.mean_window, sum(|epoch| epoch.window_s[0]) / seconds, 0.02),
                ("period", brief.period_s, seconds / 10.0, 0.05),
                (
                    "utilization",
                    brief.utilization,
                    sum(|epoch| epoch.packets[0]) / seconds / rate_per_s,
                    0.01,
                ),
            ] {
                assert!(
                    (ours / theirs - 1.0).abs() < within,
                    "{law} at {rate_per_s}: {name} {ours}, {theirs}"
                );
            }
        }
    }
}

#[test]
fn a_brief_course_says_why_there_is_none() {
    let tooth = |law: &str, rate: f64| sawtooth(&law.parse().unwrap(), rate, 0.1, 50.0, || true);
    assert!(matches!(tooth("reno", 1e7), Err(FluidError::TooLong(_))));
    assert_eq!(tooth("vegas", 1e4).unwrap().period_s, f64::INFINITY);
    assert_eq!(sawtooth(&"reno".parse().unwrap(), 1e4, 0.1, 0.0, || false), Err(FluidError::Stopped));
}
