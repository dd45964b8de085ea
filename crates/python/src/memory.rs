//! Memory: available, limit of runs, and use by runs.

use std::fs::read_to_string;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use lfn_scenario::amount;

/// Default limit of the memory of runs, in percent of the available memory.
const FREE_PERCENT: u64 = 80;

/// A control group (version 1) without a limit has one of about 2^63 bytes.
const UNLIMITED_BYTES: u64 = 1 << 60;

/// Memory that a run keeps free to grow, at most.
const SPARE_BYTES: u64 = 64 << 20;

/// Memory limit from the user, in bytes; 0: not given.
static ALLOWED: AtomicU64 = AtomicU64::new(0);
/// Memory of the runs in progress, in bytes.
static HELD: AtomicU64 = AtomicU64::new(0);

/// Sets the memory limit of all runs of this process together, in bytes; `None`: the default part of free
/// memory.
pub(crate) fn allow(bytes: Option<u64>) {
    ALLOWED.store(bytes.unwrap_or(0), Relaxed);
}

/// Memory limit of all runs together, in bytes, those in progress included.
pub(crate) fn limit_bytes() -> u64 {
    match ALLOWED.load(Relaxed) {
        0 => available_bytes().saturating_add(HELD.load(Relaxed)) / 100 * FREE_PERCENT,
        bytes => bytes,
    }
}

/// Memory reserved for one run, until it is dropped.
#[derive(Default)]
pub(crate) struct Share {
    bytes: u64,
}

impl Share {
    /// Updates the run's memory, in bytes. Returns how much is left, or why the run must end. A list exists twice while it is
    /// copied, so it counts room to grow; allocators move large lists without a copy.
    pub(crate) fn hold(&mut self, bytes: u64) -> Result<u64, String> {
        let spare = bytes.min(SPARE_BYTES);
        let (all, most) = (self.set(bytes + spare), limit_bytes());
        if all <= most {
            return Ok(most - all);
        }
        let others = match all.saturating_sub(self.bytes) {
            0 => String::new(),
            others => format!(", other runs {}", amount(others)),
        };
        let needs = amount(bytes + spare);
        Err(format!(
            "it holds {}, with room to grow {needs}{others}; allowed: {}",
            amount(bytes),
            amount(most)
        ))
    }

    /// The run ends, and leaves so many bytes.
    pub(crate) fn keep(&mut self, bytes: u64) {
        self.set(bytes);
    }

    /// Returns the memory of all runs.
    fn set(&mut self, bytes: u64) -> u64 {
        let more = bytes.wrapping_sub(self.bytes);
        self.bytes = bytes;
        HELD.fetch_add(more, Relaxed).wrapping_add(more)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        HELD.fetch_sub(self.bytes, Relaxed);
    }
}

/// Bytes that can be taken without swapping: what the kernel estimates, or what the control groups of this
/// process leave, if that is less. `u64::MAX` where neither is known.
pub(crate) fn available_bytes() -> u64 {
    let system = read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    groups
        .lines()
        .filter_map(|line| left_in_groups(line, Path::new("/sys/fs/cgroup")))
        .chain(system)
        .min()
        .unwrap_or(u64::MAX)
}

/// Bytes left in a control group and its ancestors, by its line of `/proc/self/cgroup`; `None`: no limit.
fn left_in_groups(line: &str, root: &Path) -> Option<u64> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
    let (root, files) = match controllers {
        "" => (root.to_path_buf(), ["memory.max", "memory.current"]),
        list if list.split(',').any(|name| name == "memory") => {
            (root.join("memory"), ["memory.limit_in_bytes", "memory.usage_in_bytes"])
        }
        _ => return None,
    };
    let number = |file: &Path| read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let left = |group: &Path| {
        let place = root.join(group);
        let [most, used] = files.map(|file| place.join(file));
        let most = number(&most).filter(|&most| most < UNLIMITED_BYTES)?;
        let used = number(&used)?;
        // The page cache can be reclaimed.
        let stat = read_to_string(place.join("memory.stat")).unwrap_or_default();
        let cache = stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse::<u64>().ok());
        Some(most.saturating_sub(used.saturating_sub(cache.unwrap_or(0))))
    };
    // The root is the group itself where a container sees no more.
    Path::new(group.trim_start_matches('/')).ancestors().filter_map(left).min()
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};

    use super::*;

    #[test]
    fn the_tightest_of_the_groups_around_a_process_counts() {
        let root = std::env::temp_dir().join(format!("lfn-cgroup-{}", std::process::id()));
        let inner = root.join("a/b");
        create_dir_all(&inner).unwrap();
        create_dir_all(root.join("memory/c")).unwrap();
        let put = |group: &Path, most: &str, used: &str| {
            write(group.join("memory.max"), most).unwrap();
            write(group.join("memory.current"), used).unwrap();
        };
        put(&root.join("a"), "1000\n", "900\n");
        put(&inner, "max\n", "600\n");
        assert_eq!(left_in_groups("0::/a/b", &root), Some(100));
        write(root.join("a/memory.stat"), "anon 5\ninactive_file 300\n").unwrap();
        assert_eq!(left_in_groups("0::/a/b", &root), Some(400));
        put(&inner, "650\n", "600\n");
        assert_eq!(left_in_groups("0::/a/b", &root), Some(50));
        // Use exceeds the limit; nothing is left.
        put(&inner, "500\n", "600\n");
        assert_eq!(left_in_groups("0::/a/b", &root), Some(0));
        write(root.join("memory/c/memory.limit_in_bytes"), "70").unwrap();
        write(root.join("memory/c/memory.usage_in_bytes"), "20").unwrap();
        assert_eq!(left_in_groups("4:cpu,memory:/c", &root), Some(50));
        write(root.join("memory/c/memory.limit_in_bytes"), "9223372036854771712").unwrap();
        assert_eq!(left_in_groups("4:cpu,memory:/c", &root), None);
        for none in ["0::/elsewhere", "3:cpu:/a", "", "0", "0::", "::::"] {
            assert_eq!(left_in_groups(none, &root), None, "{none}");
        }
        std::fs::remove_dir_all(root).unwrap();
    }
}
