// SPDX-License-Identifier: GPL-2.0
/*
 * The first program of the kernel: builds the network of a scenario, runs its flows in virtual time,
 * and writes what they and the queues counted. On the kernel's command line are out=FOLDER of the
 * host and tag=NAME: it reads NAME.scenario there, writes NAME.flow0.csv and so on, NAME.json last.
 *
 * Hosts are network namespaces: "a" sends, "r" and "s" are the routers at the ends of the bottleneck,
 * "b0", "b1" ... receive, one for each flow. A flow's own delay lies between s and its receiver.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <net/if.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "fail.h"
#include "flow.h"
#include "qdisc.h"

/* Set-up is done by then: the run's time 0, by the kernel's clock. */
enum { BEGIN_US = 6000000, MAX_NAMESPACES = MAX_FLOWS + 3 };

static void must(int error, const char *what)
{
	if (error)
		fail("%s: %m", what);
}

static void write_file(const char *name, const char *text)
{
	int file = open(name, O_WRONLY);

	if (file < 0 || write(file, text, strlen(text)) < 0)
		fail("%s = %s: %m", name, text);
	close(file);
}

/* Runs a program, its standard output into a file unless that is NULL; whether it succeeded. */
static int run(char *const words[], const char *output)
{
	int status;
	pid_t child = fork();

	if (!child) {
		if (output && dup2(open(output, O_CREAT | O_WRONLY | O_TRUNC, 0644), 1) < 0)
			_exit(1);
		execv(words[0], words);
		_exit(1);
	}
	return waitpid(child, &status, 0) == child && status == 0;
}

/* Runs the lines as a batch of ip or tc. */
static void batch(char *program, const char *lines)
{
	char *words[] = { program, "-batch", "/run/batch", NULL };
	FILE *file = fopen(words[2], "w");

	if (!file || fputs(lines, file) < 0 || fclose(file) || !run(words, NULL))
		fail("%s refused one of:\n%s", program, lines);
}

/* The value of NAME= on the kernel's command line. */
static char *argument(const char *name)
{
	static char line[4096];
	FILE *file = fopen("/proc/cmdline", "r");
	char *rest = line, *word;

	if (!file || !fgets(line, sizeof line, file))
		fail("/proc/cmdline: %m");
	fclose(file);
	while ((word = strtok_r(rest, " \n", &rest)))
		if (!strncmp(word, name, strlen(name)) && word[strlen(name)] == '=')
			return strdup(word + strlen(name) + 1);
	fail("the kernel's command line needs %s=", name);
}

static void mount_all(const char *host_folder)
{
	must(mount("sys", "/sys", "sysfs", 0, NULL), "/sys");
	must(mount("run", "/run", "tmpfs", 0, NULL), "/run");
	must(mkdir("/run/netns", 0755), "/run/netns");
	must(mount("none", "/host", "hostfs", 0, host_folder), host_folder);
}

/* ---- namespaces ---- */

static struct {
	char name[16];
	int fd;
} namespaces[MAX_NAMESPACES];
static int namespace_count;

static void enter(const char *name)
{
	for (int i = 0; i < namespace_count; i++)
		if (!strcmp(namespaces[i].name, name)) {
			must(setns(namespaces[i].fd, CLONE_NEWNET), name);
			return;
		}
	fail("no namespace %s", name);
}

/* Makes a namespace that ip knows by its name, and enters it. */
static void make_namespace(const char *name)
{
	char file[64];

	must(unshare(CLONE_NEWNET), name);
	snprintf(file, sizeof file, "/run/netns/%s", name);
	close(open(file, O_CREAT | O_RDONLY, 0444));
	must(mount("/proc/self/ns/net", file, NULL, MS_BIND, NULL), file);
	snprintf(namespaces[namespace_count].name, sizeof namespaces[0].name, "%s", name);
	namespaces[namespace_count++].fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

static void set_sysctl(const char *name, const char *value)
{
	char file[200] = "/proc/sys/";
	char *dot = file + strlen(file);

	snprintf(dot, sizeof file - strlen(file), "%s", name);
	for (; *dot; dot++)
		if (*dot == '.')
			*dot = '/';
	write_file(file, value);
}

/* As a host that is tuned for long fat networks, and no memory of earlier connections. */
static void tune(const struct scenario *scenario)
{
	set_sysctl("net.ipv4.ip_forward", "1");
	set_sysctl("net.ipv4.tcp_rmem", "4096 131072 268435456");
	set_sysctl("net.ipv4.tcp_wmem", "4096 8388608 268435456");
	set_sysctl("net.ipv4.tcp_no_metrics_save", "1");
	for (int i = 0; i < scenario->sysctls; i++)
		set_sysctl(scenario->sysctl[i].name, scenario->sysctl[i].value);
}

/* ---- the network ---- */

static char text[1 << 20];
static size_t text_length;

static void line(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void line(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	text_length += vsnprintf(text + text_length, sizeof text - text_length, format, arguments);
	va_end(arguments);
	text_length += snprintf(text + text_length, sizeof text - text_length, "\n");
}

static void commit(char *program)
{
	batch(program, text);
	text_length = 0;
	*text = 0;
}

/* A wire between two hosts. No offloads: a queue must see the packets that a path has. */
static void wire(const char *a, const char *device_a, const char *mac_a, const char *b,
		 const char *device_b, const char *mac_b, int mtu)
{
	line("link add %s netns %s address %s mtu %d gso_max_segs 1 txqueuelen 10000 type veth "
	     "peer name %s netns %s address %s mtu %d gso_max_segs 1 txqueuelen 10000",
	     device_a, a, mac_a, mtu, device_b, b, mac_b, mtu);
}

/* One end: its address, its neighbour, and up. */
static void attach(const char *device, const char *address, const char *other, const char *other_mac)
{
	line("addr add %s/24 dev %s", address, device);
	line("link set %s up", device);
	line("neigh replace %s lladdr %s dev %s nud permanent", other, other_mac, device);
}

struct receiver_names {
	char host[16], device[16], mac_s[24], mac_b[24], address_s[24], address_b[24];
};

static struct receiver_names names(int flow)
{
	struct receiver_names it;

	snprintf(it.host, sizeof it.host, "b%d", flow);
	snprintf(it.device, sizeof it.device, "f%d", flow);
	snprintf(it.mac_s, sizeof it.mac_s, "02:00:00:01:%02x:02", flow);
	snprintf(it.mac_b, sizeof it.mac_b, "02:00:00:01:%02x:01", flow);
	snprintf(it.address_s, sizeof it.address_s, "10.1.%d.2", flow);
	snprintf(it.address_b, sizeof it.address_b, "10.1.%d.1", flow);
	return it;
}

#define MAC_A "02:00:00:00:01:01"
#define MAC_R0 "02:00:00:00:01:02"
#define MAC_R1 "02:00:00:00:03:01"
#define MAC_S0 "02:00:00:00:03:02"

static void build_hosts(const struct scenario *scenario)
{
	make_namespace("a");
	tune(scenario);
	make_namespace("r");
	tune(scenario);
	make_namespace("s");
	tune(scenario);
	for (int i = 0; i < scenario->flows; i++) {
		make_namespace(names(i).host);
		tune(scenario);
		if (!scenario->flow[i].sack)
			set_sysctl("net.ipv4.tcp_sack", "0");
	}
}

static void build_wires(const struct scenario *scenario)
{
	int mtu = scenario_mtu(scenario);

	wire("a", "a0", MAC_A, "r", "r0", MAC_R0, mtu);
	wire("r", "r1", MAC_R1, "s", "s0", MAC_S0, mtu);
	for (int i = 0; i < scenario->flows; i++) {
		struct receiver_names it = names(i);

		wire("s", it.device, it.mac_s, it.host, "e0", it.mac_b, mtu);
	}
	commit("/bin/ip");
}

/* A route of one end of a flow: its sender's has the packet, window and ECN, its receiver's the ACKs. */
static void route(const struct flow *flow, int sends, const char *to, const char *via)
{
	char window[24] = "";

	if (flow->initial_window)
		snprintf(window, sizeof window, " initcwnd %d", flow->initial_window);
	if (sends)
		line("route add %s via %s mtu lock %d%s%s", to, via, flow->packet_bytes, window,
		     flow->ecn ? " features ecn" : "");
	else
		line("route add %s via %s%s", to, via, flow->delayed_ack ? "" : " quickack 1");
}

static void build_addresses(const struct scenario *scenario)
{
	enter("a");
	attach("a0", "10.0.1.1", "10.0.1.2", MAC_R0);
	line("link set lo up");
	for (int i = 0; i < scenario->flows; i++) {
		const struct flow *flow = &scenario->flow[i];
		char far[24];

		snprintf(far, sizeof far, "10.1.%d.0/24", i);
		route(flow, !flow->reverse, far, "10.0.1.2");
	}
	commit("/bin/ip");
	enter("r");
	attach("r0", "10.0.1.2", "10.0.1.1", MAC_A);
	attach("r1", "10.0.3.1", "10.0.3.2", MAC_S0);
	line("route add default via 10.0.3.2");
	commit("/bin/ip");
	enter("s");
	attach("s0", "10.0.3.2", "10.0.3.1", MAC_R1);
	line("route add default via 10.0.3.1");
	for (int i = 0; i < scenario->flows; i++) {
		struct receiver_names it = names(i);

		attach(it.device, it.address_s, it.address_b, it.mac_b);
	}
	commit("/bin/ip");
	for (int i = 0; i < scenario->flows; i++) {
		struct receiver_names it = names(i);

		enter(it.host);
		attach("e0", it.address_b, it.address_s, it.mac_s);
		route(&scenario->flow[i], scenario->flow[i].reverse, "default", it.address_s);
		commit("/bin/ip");
	}
}

static void add_link(const char *host, const char *device, const struct link *link, int acks)
{
	int socket;

	if (!link->present)
		return;
	enter(host);
	socket = qdisc_open();
	qdisc_add(socket, device, link, acks);
	close(socket);
	line("qdisc add dev %s parent 1:1 handle 10: %s", device,
	     link->queue ? link->queue : "pfifo limit 1000000");
	commit("/bin/tc");
}

static void build_links(const struct scenario *scenario)
{
	add_link("r", "r1", &scenario->links[FORWARD], 0);
	add_link("s", "s0", &scenario->links[REVERSE], 1);
	enter("s");
	for (int i = 0; i < scenario->flows; i++)
		line("qdisc add dev f%d root netem delay %.3fus limit 1000000", i,
		     scenario->flow[i].delay_ns / 1e3);
	commit("/bin/tc");
	for (int i = 0; i < scenario->flows; i++) {
		enter(names(i).host);
		line("qdisc add dev e0 root netem delay %.3fus limit 1000000",
		     scenario->flow[i].delay_ns / 1e3);
		commit("/bin/tc");
	}
}

/* ---- the run ---- */

/* Enters the namespace of a link: a socket there, and the link's device. */
static int enter_link(enum direction way, int *device)
{
	enter(way == FORWARD ? "r" : "s");
	*device = if_nametoindex(way == FORWARD ? "r1" : "s0");
	return qdisc_open();
}

/* A row for each link that has a queue, at every sample. */
static void sample_links(const struct scenario *scenario, const char *tag)
{
	int sockets[DIRECTIONS], devices[DIRECTIONS];
	struct queue_counters counters[DIRECTIONS] = { 0 };
	char file[300];
	FILE *out;

	snprintf(file, sizeof file, "/host/%s.links.csv", tag);
	out = fopen(file, "w");
	if (!out)
		fail("%s: %m", file);
	for (int way = FORWARD; way < DIRECTIONS; way++)
		sockets[way] = enter_link(way, &devices[way]);
	fputs("t_us,link,waiting,waiting_bytes,drops,packets,bytes,overlimits\n", out);
	for (int64_t at = 0; at <= scenario->duration_us; at += scenario->sample_us) {
		sleep_until_us(BEGIN_US + at);
		for (int way = FORWARD; way < DIRECTIONS; way++) {
			struct queue_counters *seen = &counters[way];

			if (!scenario->links[way].present)
				continue;
			qdisc_read(sockets[way], devices[way], seen);
			fprintf(out, "%lld,%d,%u,%u,%u,%u,%llu,%u\n", (long long)at, way, seen->waiting,
				seen->waiting_bytes, seen->drops, seen->packets, (unsigned long long)seen->bytes,
				seen->overlimits);
		}
	}
	fclose(out);
	_exit(0);
}

static void make_changes(const struct scenario *scenario)
{
	int sockets[DIRECTIONS], devices[DIRECTIONS];

	for (int way = FORWARD; way < DIRECTIONS; way++)
		sockets[way] = enter_link(way, &devices[way]);
	for (int i = 0; i < scenario->changes; i++) {
		const struct change *change = &scenario->change[i];

		sleep_until_us(BEGIN_US + change->at_us);
		qdisc_change(sockets[change->link], devices[change->link], change);
	}
	_exit(0);
}

static void run_flows(const struct scenario *scenario, const char *tag)
{
	int queue_socket, queue_device, writers = 0;
	char file[300];

	for (int i = 0; i < scenario->flows; i++)
		if (!fork()) {
			enter(scenario->flow[i].reverse ? "a" : names(i).host);
			receive(&scenario->flow[i], PORT + i);
		}
	for (int i = 0; i < scenario->flows; i++) {
		const struct flow *flow = &scenario->flow[i];

		snprintf(file, sizeof file, "/host/%s.flow%d.csv", tag, i);
		if (fork()) {
			writers++;
			continue;
		}
		queue_socket = enter_link(flow->reverse ? REVERSE : FORWARD, &queue_device);
		enter(flow->reverse ? names(i).host : "a");
		transmit(scenario, flow, flow->reverse ? "10.0.1.1" : names(i).address_b, PORT + i, BEGIN_US,
			 file, queue_socket, queue_device);
	}
	if (fork())
		writers++;
	else
		sample_links(scenario, tag);
	if (scenario->changes && !fork())
		make_changes(scenario);
	if (now_us() > BEGIN_US - 100000)
		fail("the set-up took until %lld us of virtual time", (long long)now_us());
	sleep_until_us(BEGIN_US + scenario->duration_us + 1000);
	/* These end by themselves; receivers do not. */
	while (writers) {
		int status;

		if (wait(&status) < 0)
			fail("wait: %m");
		writers--;
	}
}

/* Lines such as "TcpExt: A B" and "TcpExt: 1 2" as members of JSON; zeros are left out. */
static void write_counters(FILE *out, const char *file_name)
{
	static char heads[16384], values[16384];
	FILE *file = fopen(file_name, "r");

	while (file && fgets(heads, sizeof heads, file) && fgets(values, sizeof values, file)) {
		char *rest_heads, *rest_values;
		char *head = strtok_r(heads, " \n", &rest_heads);
		char *value = strtok_r(values, " \n", &rest_values);

		if (strcmp(head, "Tcp:") && strcmp(head, "TcpExt:"))
			continue;
		while ((head = strtok_r(NULL, " \n", &rest_heads)) &&
		       (value = strtok_r(NULL, " \n", &rest_values)))
			if (strcmp(value, "0"))
				fprintf(out, "\"%s\": %s, ", head, value);
	}
	if (file)
		fclose(file);
}

static void write_host(FILE *out, const char *host, int last)
{
	enter(host);
	fprintf(out, "\"%s\": {", host);
	write_counters(out, "/proc/net/netstat");
	write_counters(out, "/proc/net/snmp");
	fprintf(out, "\"end\": 0}%s\n", last ? "" : ",");
}

/* The calls of laws of ours, into TAG.records. */
static void copy_records(const char *tag)
{
	static char part[1 << 20];
	char to[300];
	FILE *in = fopen("/proc/lfn_records", "r"), *out;
	size_t bytes;

	snprintf(to, sizeof to, "/host/%s.records", tag);
	out = fopen(to, "w");
	if (!in || !out)
		fail("records, %s: %m", to);
	while ((bytes = fread(part, 1, sizeof part, in)))
		if (fwrite(part, 1, bytes, out) != bytes)
			fail("%s: %m", to);
	fclose(in);
	if (fclose(out))
		fail("%s: %m", to);
}

static void write_summary(const struct scenario *scenario, const char *tag)
{
	char file[300];
	FILE *out;

	/* First what tc says: the file that says that all is there comes last. */
	for (int way = FORWARD; way < DIRECTIONS; way++) {
		char *device = way == FORWARD ? "r1" : "s0";
		char *show[] = { "/bin/tc", "-s", "-d", "-j", "qdisc", "show", "dev", device, NULL };

		enter(way == FORWARD ? "r" : "s");
		snprintf(file, sizeof file, "/host/%s.%s.json", tag, way == FORWARD ? "queues" : "reverse");
		if (!run(show, file))
			fail("tc -s qdisc show");
	}
	if (scenario->record_bytes)
		copy_records(tag);
	snprintf(file, sizeof file, "/host/%s.json", tag);
	out = fopen(file, "w");
	if (!out)
		fail("%s: %m", file);
	fprintf(out, "{\n");
	write_host(out, "a", 0);
	for (int i = 0; i < scenario->flows; i++)
		write_host(out, names(i).host, i + 1 == scenario->flows);
	fprintf(out, "}\n");
	fclose(out);
}

int main(void)
{
	static struct scenario scenario;
	char file[300];
	char *tag;

	must(mount("proc", "/proc", "proc", 0, NULL), "/proc");
	tag = argument("tag");
	mount_all(argument("out"));
	snprintf(file, sizeof file, "/host/%s.scenario", tag);
	scenario_read(file, &scenario);
	set_sysctl("net.core.rmem_max", "268435456");
	set_sysctl("net.core.wmem_max", "268435456");
	set_sysctl("net.ipv4.tcp_mem", "400000 500000 600000");
	set_sysctl("net.core.netdev_max_backlog", "1000000");
	if (scenario.record_bytes) {
		char room[24];

		snprintf(room, sizeof room, "%llu", (unsigned long long)scenario.record_bytes);
		write_file("/proc/lfn_records", room);
	}
	build_hosts(&scenario);
	build_wires(&scenario);
	build_addresses(&scenario);
	build_links(&scenario);
	run_flows(&scenario, tag);
	write_summary(&scenario, tag);
	sync();
	reboot(RB_POWER_OFF);
}
