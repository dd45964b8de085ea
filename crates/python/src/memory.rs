//! How much memory there is.

use std::fs::read_to_string;

/// Bytes that can be taken without swapping: what the kernel estimates, or what the control group
/// leaves, if that is less. `u64::MAX` where neither is known.
pub(crate) fn available_bytes() -> u64 {
    let system = read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    let number = |file| read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let group = number("/sys/fs/cgroup/memory.max")
        .zip(number("/sys/fs/cgroup/memory.current"))
        .map(|(max, current)| max.saturating_sub(current));
    [system, group].into_iter().flatten().min().unwrap_or(u64::MAX)
}
