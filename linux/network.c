// SPDX-License-Identifier: GPL-2.0
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"
#include "network.h"
#include "qdisc.h"

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

struct receiver_names names(int flow)
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

const char *node(int number)
{
	static char name[16];

	if (number < 2)
		return number ? "s" : "r";
	snprintf(name, sizeof name, "n%d", number);
	return name;
}

struct wire_end wire_end(const struct scenario *scenario, int link)
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

struct receiver_names sender_at(int number)
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

struct receiver_names source_end(int source, int end)
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

void build_hosts(const struct scenario *scenario)
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

int begins_at(const struct scenario *scenario, int number)
{
	for (int i = 0; number && i < scenario->flows; i++)
		if (first_node(scenario, &scenario->flow[i].data) == number)
			return 1;
	return 0;
}

void build_wires(const struct scenario *scenario)
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

void lay_flow(const struct scenario *scenario, int flow, const struct path *data, const struct path *acks)
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

void build_addresses(const struct scenario *scenario)
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

int is_dual(const struct link *link)
{
	return link->queue && !strncmp(link->queue, DUALPI2, strlen(DUALPI2));
}

static void add_link(const char *host, const char *device, const struct link *link, int acks)
{
	int socket;

	if (!link->present)
		return;
	enter(host);
	socket = qdisc_open();
	qdisc_add(socket, device, link, acks);
	if (is_dual(link)) {
		qdisc_dual(socket, device, link->queue + strlen(DUALPI2));
	} else {
		line("qdisc add dev %s parent 1:1 handle 10: %s", device,
		     link->queue ? link->queue : "pfifo limit 1000000");
		commit("/bin/tc");
	}
	close(socket);
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

void build_links(const struct scenario *scenario)
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
