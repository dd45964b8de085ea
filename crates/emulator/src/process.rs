//! Processes, signals and namespaces, as the shell needs them.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::mem::{size_of, zeroed};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{null, null_mut};

use libc::{c_int, pid_t, sigset_t};

use crate::error::EmulatorError;

const UNSHARE_HINT: &str = "; needs CAP_SYS_ADMIN, or a kernel that gives user namespaces to everybody \
                            (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, \
                            kernel.apparmor_restrict_unprivileged_userns)";
/// Priority among real-time processes: above the programs of a test bed, which have the least.
const PRIORITY: c_int = 2;
/// Reservation of a processor, as runtime and period: the shortest period that Linux takes
/// (sched_dl_period_min_us), and what it leaves where the deadline server has 5 % of the 95 % that real time
/// may have.
const RUNTIME_NS: u64 = 90_000;
const PERIOD_NS: u64 = 100_000;

fn done(result: c_int, what: &str) -> Result<c_int, EmulatorError> {
    if result < 0 {
        return Err(EmulatorError::last(what, ""));
    }
    Ok(result)
}

fn owned(descriptor: c_int, what: &str) -> Result<OwnedFd, EmulatorError> {
    let descriptor = done(descriptor, what)?;
    // SAFETY: the callers have just made it, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// A pipe that no program inherits: where it is read, where it is written.
pub(crate) fn pipe() -> Result<(OwnedFd, OwnedFd), EmulatorError> {
    let mut ends = [0; 2];
    // SAFETY: there is room for two descriptors.
    done(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, "pipe")?;
    Ok((owned(ends[0], "pipe")?, owned(ends[1], "pipe")?))
}

/// 0 in the child. It goes on alone, whatever threads the parent has, and must end with [`exit`].
pub(crate) fn fork() -> Result<pid_t, EmulatorError> {
    // SAFETY: the child uses nothing that another thread may hold but the allocator, which the C library
    // makes fit for use.
    done(unsafe { libc::fork() }, "fork")
}

/// Ends this process without the parent's cleaning up.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: nothing is needed.
    unsafe { libc::_exit(code) }
}

pub(crate) fn id() -> pid_t {
    // SAFETY: nothing is needed.
    unsafe { libc::getpid() }
}

pub(crate) fn parent() -> pid_t {
    // SAFETY: nothing is needed.
    unsafe { libc::getppid() }
}

/// From now on the end of the parent is ours.
pub(crate) fn die_with_parent() -> Result<(), EmulatorError> {
    // SAFETY: takes an integer.
    done(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }, "PR_SET_PDEATHSIG").map(drop)
}

/// Whether the other end of a pipe is closed, or its process gone.
pub(crate) fn is_closed(pipe: &OwnedFd) -> bool {
    let mut polled = libc::pollfd { fd: pipe.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: the descriptor's entry lives.
    unsafe { libc::poll(&mut polled, 1, 0) > 0 }
}

/// Closes a descriptor that this process inherited and does not use.
pub(crate) fn close(descriptor: RawFd) {
    // SAFETY: its owner is another process, or is never dropped here.
    unsafe { libc::close(descriptor) };
}

/// A write to a full pipe fails instead of waiting.
pub(crate) fn do_not_wait(pipe: &OwnedFd) -> Result<(), EmulatorError> {
    // SAFETY: takes integers.
    done(unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) }, "fcntl").map(drop)
}

/// Other processes come before this one.
pub(crate) fn be_nice(nice: c_int) {
    // SAFETY: takes integers.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
}

pub(crate) fn kill(child: pid_t) {
    // SAFETY: takes integers; the child is not waited for yet, so its number is no other's.
    unsafe { libc::kill(child, libc::SIGKILL) };
}

/// A socket that asks the kernel about this network namespace (netlink(7)). It waits for an answer for a
/// second at most.
pub(crate) fn netlink(protocol: c_int, name: &'static str) -> Result<OwnedFd, EmulatorError> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: takes integers.
    let socket = owned(unsafe { libc::socket(libc::AF_NETLINK, kind, protocol) }, name)?;
    let second = libc::timeval { tv_sec: 1, tv_usec: 0 };
    let size = size_of::<libc::timeval>() as libc::socklen_t;
    // SAFETY: the time lives, and has the size that is given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const second).cast(),
            size,
        )
    };
    done(result, name).map(|_| socket)
}

/// A descriptor that can be read once a child has ended.
pub(crate) fn watch(child: pid_t) -> Result<OwnedFd, EmulatorError> {
    // SAFETY: takes integers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, child, 0) } as c_int, "pidfd_open")
}

/// Waits for a child's end.
pub(crate) fn wait(child: pid_t) -> Result<c_int, EmulatorError> {
    let mut status = 0;
    loop {
        // SAFETY: the status lives.
        if unsafe { libc::waitpid(child, &mut status, 0) } == child {
            return Ok(status);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(EmulatorError::os("waitpid", "")(error));
        }
    }
}

/// How a child ended, if it has.
pub(crate) fn ended(child: pid_t) -> Result<Option<c_int>, EmulatorError> {
    let mut status = 0;
    // SAFETY: the status lives.
    let waited = done(unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) }, "waitpid")?;
    Ok((waited == child).then_some(status))
}

/// The exit code that a shell would give.
pub(crate) fn code(status: c_int) -> i32 {
    if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128 + libc::WTERMSIG(status)
    }
}

/// Becomes a program; the exit code if that fails.
pub(crate) fn execute(command: &[CString]) -> i32 {
    let mut arguments: Vec<*const libc::c_char> = command.iter().map(|word| word.as_ptr()).collect();
    arguments.push(null());
    // SAFETY: strings that end with 0, and a list that ends with a null pointer.
    unsafe { libc::execvp(arguments[0], arguments.as_ptr()) };
    let error = io::Error::last_os_error();
    eprintln!("lfn: {}: {error}", command[0].to_string_lossy());
    if error.kind() == io::ErrorKind::NotFound {
        127
    } else {
        126
    }
}

/// Signals that end programs, held back and read from a descriptor.
pub(crate) struct Signals {
    before: sigset_t,
    descriptor: OwnedFd,
}

impl Signals {
    /// Holds them back in this thread until the value is dropped.
    pub(crate) fn block() -> Result<Signals, EmulatorError> {
        // SAFETY: the sets live; all zeros are a valid one.
        unsafe {
            let (mut set, mut before): (sigset_t, sigset_t) = (zeroed(), zeroed());
            libc::sigemptyset(&mut set);
            for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD] {
                libc::sigaddset(&mut set, signal);
            }
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            let descriptor = owned(libc::signalfd(-1, &set, flags), "signalfd")?;
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before);
            Ok(Signals { before, descriptor })
        }
    }

    /// As they were before, for a program.
    pub(crate) fn restore(&self) {
        // SAFETY: the set lives. Python ignores SIGPIPE, what it runs should not.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, null_mut());
        }
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Sends to `child` the signals sent to us alone. Signals of a terminal reach the whole group.
    pub(crate) fn pass_on(&self, child: pid_t) {
        loop {
            // SAFETY: the record lives, and has the size that is read.
            let (length, record) = unsafe {
                let mut record: libc::signalfd_siginfo = zeroed();
                let size = size_of::<libc::signalfd_siginfo>();
                (libc::read(self.descriptor(), (&raw mut record).cast(), size), record)
            };
            if length <= 0 {
                return;
            }
            let signal = record.ssi_signo as c_int;
            if record.ssi_code <= 0 && signal != libc::SIGCHLD {
                // SAFETY: takes integers; a child that is gone is no loss.
                unsafe { libc::kill(child, signal) };
            }
        }
    }

    fn poll(&self, other: RawFd) -> Result<[bool; 2], EmulatorError> {
        let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut polled = [entry(self.descriptor()), entry(other)];
        // SAFETY: the entries live. An entry of -1 is left out.
        let ready = unsafe { libc::poll(polled.as_mut_ptr(), 2, -1) };
        match io::Error::last_os_error() {
            error if ready < 0 && error.kind() != io::ErrorKind::Interrupted => {
                Err(EmulatorError::os("poll", "")(error))
            }
            _ => Ok(polled.map(|entry| entry.revents != 0)),
        }
    }

    /// Reads a child's output until its end, and forwards signals to it.
    pub(crate) fn pass_to(&self, child: pid_t, pipe: OwnedFd) -> Result<Vec<u8>, EmulatorError> {
        let mut pipe = File::from(pipe);
        let mut text = Vec::new();
        loop {
            let [signal, output] = self.poll(pipe.as_raw_fd())?;
            if signal {
                self.pass_on(child);
            }
            let mut buffer = [0; 4096];
            if output {
                match pipe.read(&mut buffer).map_err(EmulatorError::os("pipe", ""))? {
                    0 => return Ok(text),
                    length => text.extend_from_slice(&buffer[..length]),
                }
            }
        }
    }

    /// As the first process of a PID namespace: waits for all children until `command` ends, and gives its
    /// exit code.
    pub(crate) fn attend(&self, command: pid_t) -> Result<i32, EmulatorError> {
        loop {
            self.poll(-1)?;
            self.pass_on(command);
            loop {
                let mut status = 0;
                // SAFETY: the status lives.
                let child = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
                if child == command {
                    return Ok(code(status));
                }
                if child <= 0 {
                    break;
                }
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: the set lives.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, null_mut()) };
    }
}

/// struct sched_attr (sched_setattr(2)), in its first version.
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Before all other processes, and without slack in timers; whether the kernel allows it. Children are
/// ordinary ones.
///
/// Under SCHED_DEADLINE, not only SCHED_FIFO: since Linux 6.12 ordinary processes that wait for one of
/// SCHED_FIFO have a deadline server of their own (Documentation/scheduler), which takes 50 ms of a second
/// at a stretch; its deadline is a second, and ours is earlier. Other reservations of deadlines may
/// leave no room for us.
pub(crate) fn prefer() -> bool {
    let deadline = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: libc::SCHED_DEADLINE as u32,
        flags: u64::from(libc::SCHED_FLAG_RESET_ON_FORK as u32),
        nice: 0,
        priority: 0,
        runtime_ns: RUNTIME_NS,
        deadline_ns: PERIOD_NS,
        period_ns: PERIOD_NS,
    };
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: takes integers, and parameters that live.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const deadline, 0) == 0
            || libc::sched_setscheduler(0, policy, &parameters) == 0
    }
}

/// Time since the machine's start in which a hypervisor kept processors from it that had work; 0 where none
/// says so.
pub(crate) fn stolen_s() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    // SAFETY: takes an integer.
    stolen_ticks(&text) / unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64
}

/// The column `steal` of all processors (proc_stat(5)).
fn stolen_ticks(text: &str) -> f64 {
    let all = text.lines().find_map(|line| line.strip_prefix("cpu "));
    all.and_then(|columns| columns.split_whitespace().nth(7)).and_then(|n| n.parse().ok()).unwrap_or(0.0)
}

/// Moves this process, or its children, to new namespaces.
pub(crate) fn unshare(kinds: c_int) -> Result<(), EmulatorError> {
    // SAFETY: takes an integer.
    if unsafe { libc::unshare(kinds) } < 0 {
        return Err(EmulatorError::last("a new namespace", UNSHARE_HINT));
    }
    Ok(())
}

/// Whether this process may make namespaces: CAP_SYS_ADMIN (bit 21) and CAP_NET_ADMIN (12).
pub(crate) fn is_administrator() -> Result<bool, EmulatorError> {
    let status =
        fs::read_to_string("/proc/self/status").map_err(EmulatorError::os("/proc/self/status", ""))?;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0);
    let wanted = 1 << 21 | 1 << 12;
    Ok(effective & wanted == wanted)
}

/// Moves this process to a user namespace of its own, where it may do everything and is called root.
pub(crate) fn become_administrator() -> Result<(), EmulatorError> {
    // SAFETY: nothing is needed.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    unshare(libc::CLONE_NEWUSER)?;
    // user_namespaces(7): who has no right over the outer groups must give up setgroups first.
    for (file, text) in [
        ("setgroups", "deny".to_string()),
        ("uid_map", format!("0 {user} 1")),
        ("gid_map", format!("0 {group} 1")),
    ] {
        let file = format!("/proc/self/{file}");
        fs::write(&file, text).map_err(EmulatorError::os(file, UNSHARE_HINT))?;
    }
    Ok(())
}

/// Moves this process to another network namespace.
pub(crate) fn enter_network(namespace: &File) -> Result<(), EmulatorError> {
    // SAFETY: the descriptor lives.
    done(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }, "setns").map(drop)
}

/// Gives this mount namespace a /proc of this PID namespace. A container may forbid it; then `ps` shows
/// the processes of the outer one, and nothing else differs.
pub(crate) fn mount_proc() {
    let mount = |source: &CStr, target: &CStr, kind: *const libc::c_char, flags| {
        // SAFETY: strings that end with 0.
        unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind, flags, null()) == 0 }
    };
    let private = mount(c"none", c"/", null(), libc::MS_REC | libc::MS_PRIVATE);
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let _mounted = private && mount(c"proc", c"/proc", c"proc".as_ptr(), flags);
}

/// The IPv4 addresses of this network namespace.
pub(crate) fn local_addresses() -> Result<Vec<Ipv4Addr>, EmulatorError> {
    let mut found = Vec::new();
    // SAFETY: the list is the C library's until it is freed; an address of family AF_INET is a sockaddr_in.
    unsafe {
        let mut list = null_mut();
        done(libc::getifaddrs(&mut list), "getifaddrs")?;
        let mut entry: *const libc::ifaddrs = list;
        while let Some(interface) = entry.as_ref() {
            let address = interface.ifa_addr;
            if !address.is_null() && c_int::from((*address).sa_family) == libc::AF_INET {
                let internet = address.cast::<libc::sockaddr_in>().read_unaligned();
                found.push(Ipv4Addr::from(u32::from_be(internet.sin_addr.s_addr)));
            }
            entry = interface.ifa_next;
        }
        libc::freeifaddrs(list);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_eighth_column_is_what_a_hypervisor_takes() {
        let text = "cpu  31 40 11 32 20 0 37 398 1 0\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 1\n";
        assert_eq!([text, "cpu  1 2\n", ""].map(super::stolen_ticks), [398.0, 0.0, 0.0]);
    }
}
