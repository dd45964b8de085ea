// SPDX-License-Identifier: GPL-2.0
/*
 * The first program of the kernel: builds the network of a scenario, runs its flows in virtual time,
 * and writes what they and the queues counted. On the kernel's command line are out=FOLDER of the
 * host and tag=NAME: it reads NAME.scenario there, writes NAME.flow0.csv and so on, NAME.json last.
 *
 * Hosts are network namespaces: "a" sends, "r" and "s" are the routers at the ends of the bottleneck,
 * "b0", "b1" ... receive, one for each flow. A flow's own delay lies between s and its receiver. In another
 * network "r", "s", "n2", "n3" ... are its nodes, and flows have routes. A source of UDP sends from "u0" to "v0".
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
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "capture.h"
#include "datagrams.h"
#include "fail.h"
#include "flow.h"
#include "qdisc.h"

/* Set-up is done by then: the run's time 0, by the kernel's clock. */
enum { BEGIN_US = 6000000, MAX_NAMESPACES = 1 + MAX_NODES + MAX_FLOWS + 2 * MAX_SOURCES };

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

/* TCP's buffers may take all memory: it runs out, which ends the run, before they are limited. */
static void free_buffers(void)
{
	char limits[80];
	long pages = 4 * sysconf(_SC_PHYS_PAGES);

	snprintf(limits, sizeof limits, "%ld %ld %ld", pages, pages, pages);
	set_sysctl("net.ipv4.tcp_mem", limits);
}

/* As a host that is tuned for long fat networks, and no memory of earlier connections. */
static void tune(const struct scenario *scenario)
{
	set_sysctl("net.ipv4.ip_forward", "1");
	set_sysctl("net.ipv4.tcp_rmem", "4096 131072 2147483647");
	set_sysctl("net.ipv4.tcp_wmem", "4096 8388608 2147483647");
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

static const char *node(int number)
{
	static char name[16];

	if (number < 2)
		return number ? "s" : "r";
	snprintf(name, sizeof name, "n%d", number);
	return name;
}

/* An end of a wire: where a link of its number begins. */
struct wire_end {
	int node;
	char device[16], mac[24], address[24];
};

static struct wire_end wire_end(const struct scenario *scenario, int link)
{
	struct wire_end it;
	int wire = link / 2, far = link % 2;

	it.node = far ? scenario->links[link - 1].to : scenario->links[link].from;
	snprintf(it.device, sizeof it.device, "%c%d", far ? 's' : 'r', far ? wire : wire + 1);
	snprintf(it.mac, sizeof it.mac, "02:00:00:00:%02x:%02x", 3 + wire, 1 + far);
	snprintf(it.address, sizeof it.address, "10.0.%d.%d", 3 + wire, 1 + far);
	return it;
}

/* Where the data of a flow leave the routers: the last node of their path. */
static int last_node(const struct scenario *scenario, const struct path *path)
{
	return path->count ? wire_end(scenario, path->links[path->count - 1] ^ 1).node : 1;
}

static int first_node(const struct scenario *scenario, const struct path *path)
{
	return path->count ? wire_end(scenario, path->links[0]).node : 0;
}

/* The host a at another node than r: its devices there and at the node. */
static struct receiver_names sender_at(int number)
{
	struct receiver_names it;

	snprintf(it.host, sizeof it.host, "a%d", number);
	snprintf(it.device, sizeof it.device, "h%d", number);
	snprintf(it.mac_s, sizeof it.mac_s, "02:00:00:02:%02x:02", number);
	snprintf(it.mac_b, sizeof it.mac_b, "02:00:00:02:%02x:01", number);
	snprintf(it.address_s, sizeof it.address_s, "10.0.%d.2", 100 + number);
	snprintf(it.address_b, sizeof it.address_b, "10.0.%d.1", 100 + number);
	return it;
}

/* The hosts of a source of UDP, its sender (end 0) and its receiver (1). */
static struct receiver_names source_end(int source, int end)
{
	struct receiver_names it;

	snprintf(it.host, sizeof it.host, "%c%d", end ? 'v' : 'u', source);
	snprintf(it.device, sizeof it.device, "%c%d", end ? 'q' : 'p', source);
	snprintf(it.mac_s, sizeof it.mac_s, "02:00:00:%02x:%02x:02", 3 + end, source);
	snprintf(it.mac_b, sizeof it.mac_b, "02:00:00:%02x:%02x:01", 3 + end, source);
	snprintf(it.address_s, sizeof it.address_s, "10.%d.%d.2", 3 + end, source);
	snprintf(it.address_b, sizeof it.address_b, "10.%d.%d.1", 3 + end, source);
	return it;
}

static void build_hosts(const struct scenario *scenario)
{
	make_namespace("a");
	tune(scenario);
	for (int i = 0; i < scenario->nodes; i++) {
		make_namespace(node(i));
		tune(scenario);
	}
	for (int i = 0; i < scenario->flows; i++) {
		make_namespace(names(i).host);
		tune(scenario);
		if (!scenario->flow[i].sack)
			set_sysctl("net.ipv4.tcp_sack", "0");
	}
	for (int i = 0; i < scenario->sources; i++)
		for (int end = 0; end < 2; end++) {
			make_namespace(source_end(i, end).host);
			tune(scenario);
		}
}

/* Whether flows begin at this node, which is not r. */
static int begins_at(const struct scenario *scenario, int number)
{
	for (int i = 0; number && i < scenario->flows; i++)
		if (first_node(scenario, &scenario->flow[i].data) == number)
			return 1;
	return 0;
}

static void build_wires(const struct scenario *scenario)
{
	int mtu = scenario_mtu(scenario);

	wire("a", "a0", MAC_A, "r", "r0", MAC_R0, mtu);
	for (int i = 0; i < scenario->wires; i++) {
		struct wire_end near = wire_end(scenario, 2 * i), far = wire_end(scenario, 2 * i + 1);
		char from[16];

		snprintf(from, sizeof from, "%s", node(near.node));
		wire(from, near.device, near.mac, node(far.node), far.device, far.mac, mtu);
	}
	for (int i = 0; i < scenario->flows; i++) {
		struct receiver_names it = names(i);

		wire(node(last_node(scenario, &scenario->flow[i].data)), it.device, it.mac_s, it.host, "e0",
		     it.mac_b, mtu);
	}
	for (int i = 0; i < scenario->nodes; i++) {
		struct receiver_names it = sender_at(i);

		if (begins_at(scenario, i))
			wire(node(i), it.device, it.mac_s, "a", it.host, it.mac_b, mtu);
	}
	for (int i = 0; i < scenario->sources; i++)
		for (int end = 0; end < 2; end++) {
			struct receiver_names it = source_end(i, end);
			const struct path *path = &scenario->source[i].data;

			wire(node(end ? last_node(scenario, path) : first_node(scenario, path)), it.device,
			     it.mac_s, it.host, "e0", it.mac_b, mtu);
		}
	commit("/bin/ip");
}

/* A route of one end of a flow: its sender's has the packet, window and ECN, its receiver's the ACKs. */
static void route(const struct flow *flow, int sends, const char *to, const char *via, const char *from)
{
	char window[40] = "";

	if (sends && flow->initial_window)
		snprintf(window, sizeof window, " initcwnd %d", flow->initial_window);
	if (!sends && flow->receive_window)
		snprintf(window, sizeof window, " window %llu", (unsigned long long)flow->receive_window);
	if (sends)
		line("route add %s via %s%s mtu lock %d%s%s", to, via, from, flow->packet_bytes, window,
		     flow->ecn ? " features ecn" : "");
	else
		line("route add %s via %s%s%s", to, via, window, flow->delayed_ack ? "" : " quickack 1");
}

/* At each node of the path, how it goes on to an address, now or from the beginning. */
static void lay(const struct scenario *scenario, const struct path *path, const char *to)
{
	for (int i = 0; i < path->count; i++) {
		struct wire_end next = wire_end(scenario, path->links[i] ^ 1);

		enter(node(wire_end(scenario, path->links[i]).node));
		line("route replace %s via %s", to, next.address);
		commit("/bin/ip");
	}
}

/* The paths of a flow's data and of its ACKs. Packets in a link or its queue stay there. */
static void lay_flow(const struct scenario *scenario, int flow, const struct path *data, const struct path *acks)
{
	char to[24];

	snprintf(to, sizeof to, "10.1.%d.0/24", flow);
	lay(scenario, data, to);
	snprintf(to, sizeof to, "10.2.%d.1", flow);
	lay(scenario, acks, to);
}

static void build_paths(const struct scenario *scenario)
{
	int routed[MAX_NODES] = { 0 };

	for (int i = 0; i < scenario->flows; i++) {
		const struct flow *flow = &scenario->flow[i];
		int at = first_node(scenario, &flow->data);

		if (!flow->data.count)
			continue;
		enter(node(at));
		if (at && !routed[at]++)
			attach(sender_at(at).device, sender_at(at).address_s, sender_at(at).address_b,
			       sender_at(at).mac_b);
		line("route add 10.2.%d.1 via %s", i, at ? sender_at(at).address_b : "10.0.1.1");
		commit("/bin/ip");
		lay_flow(scenario, i, &flow->data, &flow->acks);
	}
	for (int i = 0; i < scenario->sources; i++) {
		const struct path *path = &scenario->source[i].data;
		char to[24];

		for (int end = 0; end < 2; end++) {
			struct receiver_names it = source_end(i, end);

			enter(node(end ? last_node(scenario, path) : first_node(scenario, path)));
			attach(it.device, it.address_s, it.address_b, it.mac_b);
			commit("/bin/ip");
			enter(it.host);
			attach("e0", it.address_b, it.address_s, it.mac_s);
			line("route add default via %s", it.address_s);
			commit("/bin/ip");
		}
		snprintf(to, sizeof to, "10.4.%d.0/24", i);
		lay(scenario, path, to);
	}
}

static void build_addresses(const struct scenario *scenario)
{
	enter("a");
	attach("a0", "10.0.1.1", "10.0.1.2", MAC_R0);
	line("link set lo up");
	for (int i = 0; i < scenario->nodes; i++) {
		struct receiver_names it = sender_at(i);

		if (begins_at(scenario, i))
			attach(it.host, it.address_b, it.address_s, it.mac_s);
	}
	for (int i = 0; i < scenario->flows; i++) {
		const struct flow *flow = &scenario->flow[i];
		int at = first_node(scenario, &flow->data);
		char far[24], from[32] = "";

		snprintf(far, sizeof far, "10.1.%d.0/24", i);
		if (flow->data.count) {
			line("addr add 10.2.%d.1/32 dev a0", i);
			snprintf(from, sizeof from, " src 10.2.%d.1", i);
		}
		route(flow, !flow->reverse, far, at ? sender_at(at).address_s : "10.0.1.2", from);
	}
	commit("/bin/ip");
	for (int n = 0; n < scenario->nodes; n++) {
		enter(node(n));
		if (!n)
			attach("r0", "10.0.1.2", "10.0.1.1", MAC_A);
		for (int i = 0; i < 2 * scenario->wires; i++) {
			struct wire_end near = wire_end(scenario, i), far = wire_end(scenario, i ^ 1);

			if (near.node != n)
				continue;
			attach(near.device, near.address, far.address, far.mac);
			if (i < 2)
				line("route add default via %s", far.address);
		}
		for (int i = 0; i < scenario->flows; i++) {
			struct receiver_names it = names(i);

			if (last_node(scenario, &scenario->flow[i].data) == n)
				attach(it.device, it.address_s, it.address_b, it.mac_b);
		}
		commit("/bin/ip");
	}
	for (int i = 0; i < scenario->flows; i++) {
		struct receiver_names it = names(i);

		enter(it.host);
		attach("e0", it.address_b, it.address_s, it.mac_s);
		route(&scenario->flow[i], scenario->flow[i].reverse, "default", it.address_s, "");
		commit("/bin/ip");
	}
	build_paths(scenario);
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

/*
 * A link that takes no time but the delay: the connections behind it keep the window of their route. A
 * netem that tc makes would cut the delay to whole microseconds, eight packets of 100 Gbit/s.
 */
static void add_delay(const char *device, uint64_t delay_ns)
{
	struct link link = { .rate_bps = 1000000000000000000ULL, .delay_ns = delay_ns };
	int socket = qdisc_open();

	qdisc_add(socket, device, &link, 0);
	close(socket);
}

static void build_links(const struct scenario *scenario)
{
	for (int i = 0; i < 2 * scenario->wires; i++) {
		struct wire_end from = wire_end(scenario, i);

		/* In a dumbbell ACKs alone take the reverse link where packets are lost there. */
		add_link(node(from.node), from.device, &scenario->links[i],
			 i == REVERSE && !scenario->flow[0].data.count);
	}
	for (int i = 0; i < scenario->flows; i++) {
		const struct flow *flow = &scenario->flow[i];
		char device[8];

		snprintf(device, sizeof device, "f%d", i);
		enter(node(last_node(scenario, &flow->data)));
		add_delay(device, flow->delay_ns);
		enter(names(i).host);
		add_delay("e0", flow->delay_ns);
	}
	for (int i = 0; i < scenario->flows; i++)
		if (scenario->flow[i].receive_window && scenario->flow[i].reverse) {
			enter("a");
			add_delay("a0", 0);
			break;
		}
}

/* ---- the run ---- */

/* Enters the namespace of a link: a socket there, and the link's device. */
static int enter_link(const struct scenario *scenario, int link, int *device)
{
	struct wire_end from = wire_end(scenario, link);

	enter(node(from.node));
	*device = if_nametoindex(from.device);
	return qdisc_open();
}

static void sample_flows(const struct scenario *scenario, int64_t at_us, FILE *const *files, const int *tcp,
			 const struct queue_counters *counters)
{
	for (int i = 0; i < scenario->flows; i++) {
		const struct flow *flow = &scenario->flow[i];

		if (at_us > flow->start_us)
			flow_sample(files[i], tcp[i], at_us,
				    &counters[flow->data.count ? flow->data.links[0] : flow->reverse]);
	}
}

/* At every sample a row for each link that has a queue, and for each flow that has begun. */
static void sample(const struct scenario *scenario, const char *tag, const int *tcp)
{
	int sockets[MAX_WAYS], devices[MAX_WAYS], links = 2 * scenario->wires;
	struct queue_counters counters[MAX_WAYS] = { 0 };
	static FILE *flows[MAX_FLOWS];
	char file[300];
	FILE *out;

	snprintf(file, sizeof file, "/host/%s.links.csv", tag);
	out = fopen(file, "w");
	if (!out)
		fail("%s: %m", file);
	for (int i = 0; i < scenario->flows; i++)
		flows[i] = flow_samples(tag, i);
	for (int way = 0; way < links; way++)
		sockets[way] = enter_link(scenario, way, &devices[way]);
	fputs("t_us,link,waiting,waiting_bytes,drops,packets,bytes,overlimits\n", out);
	for (int64_t at = 0; at <= scenario->duration_us; at += scenario->sample_us) {
		sleep_until_us(BEGIN_US + at);
		for (int way = 0; way < links; way++) {
			struct queue_counters *seen = &counters[way];

			if (!scenario->links[way].present)
				continue;
			qdisc_read(sockets[way], devices[way], seen);
			fprintf(out, "%lld,%d,%u,%u,%u,%u,%llu,%u\n", (long long)at, way, seen->waiting,
				seen->waiting_bytes, seen->drops, seen->packets, (unsigned long long)seen->bytes,
				seen->overlimits);
		}
		sample_flows(scenario, at, flows, tcp, counters);
	}
	/* The flows once more at the end of the run, whatever the interval of samples. */
	if (scenario->duration_us % scenario->sample_us) {
		sleep_until_us(BEGIN_US + scenario->duration_us);
		sample_flows(scenario, scenario->duration_us, flows, tcp, counters);
	}
	fclose(out);
	for (int i = 0; i < scenario->flows; i++)
		fclose(flows[i]);
	_exit(0);
}

static void make_changes(const struct scenario *scenario)
{
	int sockets[MAX_WAYS], devices[MAX_WAYS];

	for (int way = 0; way < 2 * scenario->wires; way++)
		sockets[way] = enter_link(scenario, way, &devices[way]);
	for (int i = 0; i < scenario->changes; i++) {
		const struct change *change = &scenario->change[i];

		sleep_until_us(BEGIN_US + change->at_us);
		if (change->flow >= 0)
			lay_flow(scenario, change->flow, &change->data, &change->acks);
		else
			qdisc_change(sockets[change->link], devices[change->link], change);
	}
	_exit(0);
}

/* At both hosts of each flow. */
static void record_packets(const struct scenario *scenario, const char *tag)
{
	char file[300];

	enter("a");
	capture_open("a0", -1, 0);
	for (int i = 0; i < scenario->nodes; i++)
		if (begins_at(scenario, i))
			capture_open(sender_at(i).host, -1, 0);
	for (int i = 0; i < scenario->flows; i++) {
		enter(names(i).host);
		capture_open("e0", i, scenario->flow[i].delay_ns);
	}
	snprintf(file, sizeof file, "/host/%s.packets", tag);
	capture_run(scenario, BEGIN_US, file);
}

static void run_flows(const struct scenario *scenario, const char *tag)
{
	int senders[MAX_FLOWS];
	pid_t sampler, recorder = 0;

	for (int i = 0; i < scenario->flows; i++)
		if (!fork()) {
			enter(scenario->flow[i].reverse ? "a" : names(i).host);
			receive(&scenario->flow[i], PORT + i);
		}
	for (int i = 0; i < scenario->flows; i++) {
		const struct flow *flow = &scenario->flow[i];

		enter(flow->reverse ? names(i).host : "a");
		senders[i] = flow_open(flow);
		if (fork())
			continue;
		transmit(scenario, flow, senders[i], flow->reverse ? "10.0.1.1" : names(i).address_b, PORT + i, BEGIN_US);
	}
	sampler = fork();
	if (!sampler)
		sample(scenario, tag, senders);
	for (int i = 0; i < scenario->flows; i++)
		close(senders[i]);
	if (scenario->changes && !fork())
		make_changes(scenario);
	for (int i = 0; i < scenario->sources; i++) {
		enter(source_end(i, 1).host);
		discard_datagrams();
		if (fork())
			continue;
		enter(source_end(i, 0).host);
		send_datagrams(scenario, &scenario->source[i], source_end(i, 1).address_b, BEGIN_US);
	}
	if (scenario->capture_packets) {
		recorder = fork();
		if (!recorder)
			record_packets(scenario, tag);
	}
	if (now_us() > BEGIN_US - 100000)
		fail("the set-up took until %lld us of virtual time", (long long)now_us());
	sleep_until_us(BEGIN_US + scenario->duration_us + 1000);
	if (waitpid(sampler, NULL, 0) < 0 || (recorder && waitpid(recorder, NULL, 0) < 0))
		fail("wait: %m");
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

/* Pages that the kernel checked for memory to take back: it was short of memory. */
static unsigned long long pages_searched(void)
{
	unsigned long long count, sum = 0;
	FILE *file = fopen("/proc/vmstat", "r");
	char name[64];

	if (!file)
		fail("/proc/vmstat: %m");
	while (fscanf(file, "%63s %llu", name, &count) == 2)
		if (!strcmp(name, "pgscan_kswapd") || !strcmp(name, "pgscan_direct"))
			sum += count;
	fclose(file);
	return sum;
}

/* Packets that a device has received, or sent. */
static unsigned long long device_packets(const char *device, int sent)
{
	unsigned long long received, transmitted;
	char row[400], name[32];
	FILE *file = fopen("/proc/net/dev", "r");

	while (file && fgets(row, sizeof row, file))
		if (sscanf(row, " %31[^:]: %*u %llu %*u %*u %*u %*u %*u %*u %*u %llu", name, &received,
			   &transmitted) == 3 &&
		    !strcmp(name, device)) {
			fclose(file);
			return sent ? transmitted : received;
		}
	fail("no counters of %s", device);
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
	for (int way = 0; way < 2 * scenario->wires; way++) {
		struct wire_end from = wire_end(scenario, way);
		char *show[] = { "/bin/tc", "-s", "-d", "-j", "qdisc", "show", "dev", from.device, NULL };

		enter(node(from.node));
		snprintf(file, sizeof file, "/host/%s.link%d.json", tag, way);
		if (!run(show, file))
			fail("tc -s qdisc show");
	}
	if (scenario->record_bytes)
		copy_records(tag);
	snprintf(file, sizeof file, "/host/%s.json", tag);
	out = fopen(file, "w");
	if (!out)
		fail("%s: %m", file);
	fprintf(out, "{\n\"machine\": {\"pages_searched\": %llu},\n", pages_searched());
	write_host(out, "a", 0);
	for (int i = 0; i < scenario->sources; i++) {
		enter(source_end(i, 0).host);
		fprintf(out, "\"udp%d\": {\"sent\": %llu, ", i, device_packets("e0", 1));
		enter(source_end(i, 1).host);
		fprintf(out, "\"delivered\": %llu},\n", device_packets("e0", 0));
	}
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
	/* Sleeps end at their time, not up to 50 us later. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	snprintf(file, sizeof file, "/host/%s.scenario", tag);
	scenario_read(file, &scenario);
	set_sysctl("net.core.rmem_max", "2147483647");
	set_sysctl("net.core.wmem_max", "2147483647");
	free_buffers();
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
