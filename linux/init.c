// SPDX-License-Identifier: GPL-2.0
/*
 * The first program of the kernel: builds the network of a scenario, runs its flows in virtual time,
 * and writes what they and the queues counted. On the kernel's command line are out=FOLDER of the
 * host and tag=NAME: it reads NAME.scenario there, writes NAME.flow0.csv and so on, NAME.json last.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <net/if.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "capture.h"
#include "datagrams.h"
#include "fail.h"
#include "flow.h"
#include "guest.h"
#include "network.h"
#include "qdisc.h"
#include "summary.h"

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

/* TCP's buffers may take all memory: it runs out, which ends the run, before they are limited. */
static void free_buffers(void)
{
	char limits[80];
	long pages = 4 * sysconf(_SC_PHYS_PAGES);

	snprintf(limits, sizeof limits, "%ld %ld %ld", pages, pages, pages);
	set_sysctl("net.ipv4.tcp_mem", limits);
}

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
