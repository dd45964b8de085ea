"""The commands of ``lfn``, and the texts of the page of ``lfn --help``.

Each sentence is the first of the command's own help; a test compares the page with the parser's.
"""

from __future__ import annotations

HELP = """\
A congestion-control laboratory for long fat networks.

Start here:

    lfn demo
    lfn compare --rate 10Gbit/s --rtt 100ms --background 2 --law reno,cubic,htcp-be --seeds 3
    lfn run scenario.toml --json
    lfn laws cubic

Quantities have units: 10Gbit/s, 100ms, 1bdp, "250 packets". `--out` is the results directory;
stored runs are not run again, so repeating a command resumes it.

Exit codes: 0 done, 1 a check failed or a verdict changed, 2 wrong scenario or usage, 3 results
cannot be read or written, 4 not available here, 5 a law in Python raised an exception, 6 the test
bed was late, 130 interrupted.
"""
#: Of each command its module and name there, and what its help begins with.
COMMANDS = {
    "demo": (
        "runs:demo",
        "Run eight laws in turn, one flow each, on 1 Gbit/s x 100 ms with a buffer of 0.1 BDP.",
    ),
    "compare": (
        "runs:compare",
        "Run several laws in turn on the same path, and compare them.",
    ),
    "run": (
        "runs:run",
        "Run a scenario file.",
    ),
    "report": (
        "runs:report",
        "Rewrite the report of a results directory from its stored runs.",
    ),
    "advise": (
        "advise:advise",
        "Advise what to set for a transfer over a path: law, streams, pacing, socket buffers.",
    ),
    "diagnose": (
        "diagnose:diagnose",
        "Find what limited a measured transfer: window, buffer, losses, path, application.",
    ),
    "laboratory": (
        "laboratory:laboratory",
        "Write the laboratory in the browser: one HTML page that holds the simulator.",
    ),
    "new": (
        "setting_up:new",
        "Write a commented start: a scenario, a law in Python, a controller, a sweep.",
    ),
    "laws": (
        "laws:laws",
        "List the laws, or show the card of one.",
    ),
    "port": (
        "laws:port",
        "Record test vectors for a C header from a law in Python, or in a header.",
    ),
    "plot": (
        "results:plot",
        "Draw any table of a result, or several results in one figure.",
    ),
    "pcap": (
        "results:pcap",
        "Write the packets of a run as pcapng, for Wireshark, tshark and tcptrace.",
    ),
    "qlog": (
        "results:qlog",
        "Write the samples of a run as qlog, for tools of QUIC.",
    ),
    "import": (
        "importing:importing",
        "Store a measurement of another tool as a result.",
    ),
    "table": (
        "results:table",
        "Print a row for each case of a result: means over seeds with 95 % intervals.",
    ),
    "metrics": (
        "results:metrics",
        "Print standard metrics of stored results.",
    ),
    "sweep": (
        "sweep:sweep",
        "Run a scenario with many values of its keys, from the file's table `[sweep]`.",
    ),
    "tune": (
        "sweep:tune",
        "Search for values of keys that minimise an objective, from the file's table `[tune]`.",
    ),
    "store": (
        "sweep:store",
        "Maintain a results directory: list, check, clean, merge.",
    ),
    "suite": (
        "suites:suites",
        "Run a benchmark of the field.",
    ),
    "theory": (
        "theory:theory",
        "Compute closed forms and sawtooths of laws, without simulation.",
    ),
    "kernel": (
        "kernel:kernel",
        "Load laws into the running Linux as congestion controls for any program.",
    ),
    "doctor": (
        "doctor:doctor",
        "List what works on this machine: laws in the kernel, path emulator, fast sockets.",
    ),
    "send": (
        "transfer:send",
        "Send files and folders to `lfn recv`, over UDT.",
    ),
    "recv": (
        "transfer:recv",
        "Receive files from `lfn send` into a directory until interrupted.",
    ),
    "shell": (
        "testbed:shell",
        "Run a program behind an emulated path, in a new network namespace.",
    ),
    "testbed": (
        "testbed:on_kernel",
        "Run a scenario on the TCP of this kernel, over the emulated path.",
    ),
    "agree": (
        "testbed:agree",
        "Run a scenario in the simulator and on Linux's TCP, and compare them.",
    ),
    "paper": (
        "papers:paper",
        "Reproduce a paper: run its study, test its claims.",
    ),
    "evaluate": (
        "evaluate:evaluate",
        "Show the evidence that RFC 9743 (BCP 133) asks for, for one law.",
    ),
    "score": (
        "score:score",
        "Score a law on a committed objective: goodput, fairness, queues, recovery, marks.",
    ),
    "attack": (
        "attack:attack",
        "Search for paths, losses and cross traffic that hurt a law more than others.",
    ),
}
#: What stands below the commands.
OTHERS = {
    "--help (-h)": "Display this message and exit.",
    "--install-completion": (
        "Complete commands, options and their values in the shell by the Tab key."
    ),
    "--version": "Display application version.",
}
