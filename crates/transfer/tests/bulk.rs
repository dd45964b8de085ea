//! Flows without files, over the loopback.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;

use lfn_transfer::{drain, send_zeros, Bulk, Listener, Plan};
use lfn_units::{Rate, Time};

#[test]
fn a_flow_ends_with_its_size_or_its_time() {
    let plan = Plan { max_rate: Some(Rate(80_000_000)), ..Plan::default() };
    let listener = Listener::bind("127.0.0.1:0", plan.clone()).unwrap();
    let to = listener.local().to_string();
    let stop = Arc::new(AtomicBool::new(false));
    let taker = thread::spawn({
        let stop = stop.clone();
        move || drain(listener, &stop)
    });
    let sized =
        Bulk { to, plan, size_bytes: Some(1_000_000), duration: Time::from_s(20), every: Time::from_ms(10) };
    let sent = send_zeros(&sized).unwrap();
    let last = sent.looks.last().unwrap();
    assert!(last.delivered_bytes >= 1_000_000, "{last:?}");
    let completion_s = sent.completion_s.unwrap();
    // At 80 Mbit/s a megabyte takes 100 ms.
    assert!((0.1..20.0).contains(&completion_s), "{completion_s}");
    assert!(sent.looks.windows(2).all(|pair| pair[0].t_s < pair[1].t_s));
    assert!(sent.looks.windows(2).all(|pair| pair[0].delivered_bytes <= pair[1].delivered_bytes));

    let endless = Bulk { size_bytes: None, duration: Time::from_ms(300), ..sized };
    let sent = send_zeros(&endless).unwrap();
    assert_eq!(sent.completion_s, None);
    assert!(sent.looks.len() > 1);
    assert!(sent.looks.last().unwrap().t_s < 0.3);
    stop.store(true, Relaxed);
    taker.join().unwrap().unwrap();
}
