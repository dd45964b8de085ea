/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The network of a scenario. Hosts are network namespaces: "a" sends, "r" and "s" are the routers at the ends of the
 * bottleneck, "b0", "b1" ... receive, one for each flow. A flow's own delay lies between s and its receiver. In another
 * network "r", "s", "n2", "n3" ... are its nodes, and flows have routes. A source of UDP sends from "u0" to "v0".
 */
#ifndef NETWORK_H
#define NETWORK_H

#include "scenario.h"

/* A host, its device at its node, and the addresses of both ends. */
struct receiver_names {
	char host[16], device[16], mac_s[24], mac_b[24], address_s[24], address_b[24];
};

/* An end of a wire: where a link of its number begins. */
struct wire_end {
	int node;
	char device[16], mac[24], address[24];
};

/* In this order. */
void build_hosts(const struct scenario *scenario);
void build_wires(const struct scenario *scenario);
void build_addresses(const struct scenario *scenario);
void build_links(const struct scenario *scenario);

/* The receiver of a flow. */
struct receiver_names names(int flow);

/* The host a at another node than r: its devices there and at the node. */
struct receiver_names sender_at(int number);

/* The hosts of a source of UDP, its sender (end 0) and its receiver (1). */
struct receiver_names source_end(int source, int end);

const char *node(int number);

struct wire_end wire_end(const struct scenario *scenario, int link);

/* Whether the queue is DualPI2, which tc does not know. */
int is_dual(const struct link *link);

/* Whether flows begin at this node, which is not r. */
int begins_at(const struct scenario *scenario, int number);

/* The paths of a flow's data and of its ACKs. Packets in a link or its queue stay there. */
void lay_flow(const struct scenario *scenario, int flow, const struct path *data, const struct path *acks);

#endif
