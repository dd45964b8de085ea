// SPDX-License-Identifier: GPL-2.0
/* Reads what one run is. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "scenario.h"

static const char *file_name;
static int line_number;

static void wrong(const char *what, const char *found)
{
	fail("%s:%d: %s: \"%s\"", file_name, line_number, what, found);
}

static long long number(const char *text, long long least)
{
	char *end;
	long long value;

	if (!text)
		wrong("a number is missing", "");
	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end || value < least)
		wrong("not a whole number, or too small", text);
	return value;
}

static int at_most(const char *text, int most)
{
	long long value = number(text, 0);

	if (value > most)
		wrong("too large", text);
	return value;
}

/* A link: forward, reverse, or its number. */
static int link_number(const char *text)
{
	if (!text)
		wrong("neither forward, reverse nor a number", "");
	if (!strcmp(text, "forward"))
		return FORWARD;
	if (!strcmp(text, "reverse"))
		return REVERSE;
	return at_most(text, MAX_WAYS - 1);
}

/* Links with commas between them. */
static struct path path(char *text)
{
	struct path it = { 0 };
	char *rest, *word;

	for (word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		if (it.count == MAX_WIRES)
			wrong("too many links", word);
		it.links[it.count++] = link_number(word);
	}
	return it;
}

/* The next KEY=VALUE of a line; whether there is one. */
static int pair(char **rest, char **key, char **value)
{
	char *word = strtok_r(NULL, " \n", rest);

	if (!word)
		return 0;
	*key = word;
	*value = strchr(word, '=');
	if (!*value)
		wrong("not KEY=VALUE", word);
	*(*value)++ = 0;
	return 1;
}

static void read_run(struct scenario *scenario, char *rest)
{
	char *key, *value;

	while (pair(&rest, &key, &value)) {
		if (!strcmp(key, "duration_us"))
			scenario->duration_us = number(value, 1);
		else if (!strcmp(key, "sample_us"))
			scenario->sample_us = number(value, 100);
		else if (!strcmp(key, "record_bytes"))
			scenario->record_bytes = number(value, 0);
		else if (strcmp(key, "seed") && strcmp(key, "memory_mib")) /* linux/run takes them */
			wrong("a run has duration_us, sample_us, seed, memory_mib, record_bytes", key);
	}
}

static void read_link(struct scenario *scenario, char *rest)
{
	int number_of_link = link_number(strtok_r(NULL, " \n", &rest));
	struct link *link = &scenario->links[number_of_link];
	char *key, *value;

	link->present = 1;
	link->from = number_of_link % 2;
	link->to = 1 - link->from;
	while (pair(&rest, &key, &value)) {
		if (!strcmp(key, "rate_bps"))
			link->rate_bps = number(value, 1);
		else if (!strcmp(key, "delay_ns"))
			link->delay_ns = number(value, 0);
		else if (!strcmp(key, "hold_ns"))
			link->hold_ns = number(value, 0);
		else if (!strcmp(key, "jitter_ns"))
			link->jitter_ns = number(value, 0);
		else if (!strcmp(key, "jitter_seed"))
			link->jitter_seed = number(value, 0);
		else if (!strcmp(key, "jitter_in_order"))
			link->jitter_in_order = number(value, 0);
		else if (!strcmp(key, "from"))
			link->from = at_most(value, MAX_NODES - 1);
		else if (!strcmp(key, "to"))
			link->to = at_most(value, MAX_NODES - 1);
		else
			wrong("a link has rate_bps, delay_ns, hold_ns, jitter_ns, jitter_seed, jitter_in_order, from, to", key);
	}
	if (!link->rate_bps)
		wrong("a link needs", "rate_bps");
}

static void read_flow(struct scenario *scenario, char *rest)
{
	struct flow *flow = &scenario->flow[scenario->flows];
	char *key, *value;

	if (scenario->flows++ == MAX_FLOWS)
		wrong("too many flows", "");
	*flow = (struct flow){ .stop_us = -1, .sack = 1, .delayed_ack = 1, .packet_bytes = 1500 };
	while (pair(&rest, &key, &value)) {
		if (!strcmp(key, "law"))
			snprintf(flow->law, sizeof flow->law, "%s", value);
		else if (!strcmp(key, "delay_ns"))
			flow->delay_ns = number(value, 0);
		else if (!strcmp(key, "start_us"))
			flow->start_us = number(value, 0);
		else if (!strcmp(key, "stop_us"))
			flow->stop_us = number(value, 0);
		else if (!strcmp(key, "size_bytes"))
			flow->size_bytes = number(value, 1);
		else if (!strcmp(key, "ecn"))
			flow->ecn = number(value, 0);
		else if (!strcmp(key, "sack"))
			flow->sack = number(value, 0);
		else if (!strcmp(key, "delayed_ack"))
			flow->delayed_ack = number(value, 0);
		else if (!strcmp(key, "reverse"))
			flow->reverse = number(value, 0);
		else if (!strcmp(key, "pacing"))
			flow->pacing = number(value, 0);
		else if (!strcmp(key, "packet_bytes"))
			flow->packet_bytes = number(value, 100);
		else if (!strcmp(key, "initial_window"))
			flow->initial_window = number(value, 1);
		else if (!strcmp(key, "receive_window"))
			flow->receive_window = number(value, 1);
		else if (!strcmp(key, "write_bps"))
			flow->write_bps = number(value, 1);
		else if (!strcmp(key, "on_us"))
			flow->on_us = number(value, 1);
		else if (!strcmp(key, "off_us"))
			flow->off_us = number(value, 1);
		else if (!strcmp(key, "route"))
			flow->data = path(value);
		else if (!strcmp(key, "ack_route"))
			flow->acks = path(value);
		else
			wrong("no such key of a flow", key);
	}
	if (!*flow->law)
		wrong("a flow needs", "law");
	if (!flow->on_us != !flow->off_us || (flow->on_us && !flow->write_bps))
		wrong("a flow that pauses needs", "write_bps, on_us and off_us");
}

/* rate_bps:from_ps:to_ps, with commas between them. */
static void read_bursts(struct source *source, char *text)
{
	char *rest, *word;

	for (word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		struct burst burst;
		char *parts;

		burst.rate_bps = number(strtok_r(word, ":", &parts), 0);
		burst.start_ps = number(strtok_r(NULL, ":", &parts), 0);
		burst.stop_ps = number(strtok_r(NULL, ":", &parts), 0);
		source->burst = realloc(source->burst, (source->bursts + 1) * sizeof burst);
		source->burst[source->bursts++] = burst;
	}
}

static void read_source(struct scenario *scenario, char *rest)
{
	struct source *source = &scenario->source[scenario->sources];
	char *key, *value;

	if (scenario->sources++ == MAX_SOURCES)
		wrong("too many sources of UDP", "");
	while (pair(&rest, &key, &value)) {
		if (!strcmp(key, "packet_bytes"))
			source->packet_bytes = number(value, 29);
		else if (!strcmp(key, "route"))
			source->data = path(value);
		else if (!strcmp(key, "bursts"))
			read_bursts(source, value);
		else
			wrong("a source of UDP has packet_bytes, route, bursts", key);
	}
	if (!source->packet_bytes || !source->data.count)
		wrong("a source of UDP needs", "packet_bytes and route");
}

static void read_capture(struct scenario *scenario, char *rest)
{
	char *key, *value;

	while (pair(&rest, &key, &value)) {
		if (!strcmp(key, "from_us"))
			scenario->capture_from_us = number(value, 0);
		else if (!strcmp(key, "to_us"))
			scenario->capture_to_us = number(value, 0);
		else if (!strcmp(key, "packets"))
			scenario->capture_packets = number(value, 1);
		else
			wrong("a capture has from_us, to_us, packets", key);
	}
}

static void read_numbers(struct gaps *gaps, char *rest)
{
	char *word;
	int room = gaps->count;

	while ((word = strtok_r(NULL, " \n", &rest))) {
		if (gaps->count >= room) {
			room = 2 * room + 1024;
			gaps->values = realloc(gaps->values, room * sizeof *gaps->values);
		}
		gaps->values[gaps->count++] = number(word, 0);
	}
}

static void read_change(struct scenario *scenario, char *rest)
{
	struct change *change = &scenario->change[scenario->changes];
	char *key, *value;

	if (scenario->changes++ == MAX_CHANGES)
		wrong("too many changes", "");
	change->at_us = number(strtok_r(NULL, " \n", &rest), 0);
	change->flow = -1;
	key = strtok_r(NULL, " \n", &rest);
	if (key && !strcmp(key, "flow"))
		change->flow = at_most(strtok_r(NULL, " \n", &rest), MAX_FLOWS - 1);
	else
		change->link = link_number(key);
	while (pair(&rest, &key, &value)) {
		if (change->flow >= 0 && !strcmp(key, "route")) {
			change->data = path(value);
		} else if (change->flow >= 0 && !strcmp(key, "ack_route")) {
			change->acks = path(value);
		} else if (change->flow >= 0) {
			wrong("a change of a flow has route, ack_route", key);
		} else if (!strcmp(key, "rate_bps")) {
			change->sets_rate = 1;
			change->rate_bps = number(value, 0);
		} else if (!strcmp(key, "delay_ns")) {
			change->sets_delay = 1;
			change->delay_ns = number(value, 0);
		} else {
			wrong("a change has rate_bps, delay_ns", key);
		}
	}
}

/* Of a change of losses, at T LINK: what packets are lost from then on. */
static void read_losses(struct scenario *scenario, char *rest, int of_handshakes)
{
	struct change *change = &scenario->change[scenario->changes - 1];

	if (!scenario->changes || change->flow >= 0)
		wrong("not behind a change of a link", "losing");
	change->sets_losses = 1;
	read_numbers(of_handshakes ? &change->unopened : &change->lost, rest);
}

static void read_gaps(struct scenario *scenario, const char *kind, char *rest)
{
	struct link *link = &scenario->links[link_number(strtok_r(NULL, " \n", &rest))];
	struct gaps *gaps = !strcmp(kind, "lost") ? &link->lost
			    : !strcmp(kind, "held") ? &link->held
			    : !strcmp(kind, "unopened") ? &link->unopened
						    : &link->duplicated;

	read_numbers(gaps, rest);
}

static void read_sysctl(struct scenario *scenario, char *rest)
{
	struct sysctl *sysctl = &scenario->sysctl[scenario->sysctls];
	char *equals = strchr(rest, '=');

	if (!equals || scenario->sysctls++ == MAX_SYSCTLS)
		wrong("not sysctl NAME=VALUE, or too many", rest);
	*equals = 0;
	sysctl->name = strdup(rest);
	sysctl->value = strdup(equals + 1);
	sysctl->value[strcspn(sysctl->value, "\n")] = 0;
}

static void read_line(struct scenario *scenario, char *line)
{
	char *rest, *kind = strtok_r(line, " \n", &rest);

	if (!kind || *kind == '#')
		return;
	if (!strcmp(kind, "run"))
		read_run(scenario, rest);
	else if (!strcmp(kind, "link"))
		read_link(scenario, rest);
	else if (!strcmp(kind, "flow"))
		read_flow(scenario, rest);
	else if (!strcmp(kind, "udp"))
		read_source(scenario, rest);
	else if (!strcmp(kind, "capture"))
		read_capture(scenario, rest);
	else if (!strcmp(kind, "at"))
		read_change(scenario, rest);
	else if (!strcmp(kind, "losing") || !strcmp(kind, "unopening"))
		read_losses(scenario, rest, *kind == 'u');
	else if (!strcmp(kind, "lost") || !strcmp(kind, "held") || !strcmp(kind, "duplicated") ||
		 !strcmp(kind, "unopened"))
		read_gaps(scenario, kind, rest);
	else if (!strcmp(kind, "sysctl"))
		read_sysctl(scenario, rest);
	else if (!strcmp(kind, "queue")) {
		struct link *link = &scenario->links[link_number(strtok_r(NULL, " \n", &rest))];

		link->queue = strdup(rest);
		link->queue[strcspn(link->queue, "\n")] = 0;
	} else {
		wrong("no such line", kind);
	}
}

void scenario_read(const char *file, struct scenario *scenario)
{
	FILE *lines = fopen(file, "r");
	char *line = NULL;
	size_t room = 0;

	if (!lines)
		fail("%s: %m", file);
	file_name = file;
	*scenario = (struct scenario){ .sample_us = 10000 };
	for (line_number = 1; getline(&line, &room, lines) >= 0; line_number++)
		read_line(scenario, line);
	free(line);
	fclose(lines);
	if (!scenario->duration_us || !scenario->flows || !scenario->links[FORWARD].present)
		fail("%s: needs lines run, link forward and flow", file);
	for (int i = 0; i < MAX_WAYS; i++) {
		const struct link *link = &scenario->links[i];

		if (!link->present)
			continue;
		scenario->wires = i / 2 + 1;
		if (link->from >= scenario->nodes)
			scenario->nodes = link->from + 1;
		if (link->to >= scenario->nodes)
			scenario->nodes = link->to + 1;
	}
}

int scenario_mtu(const struct scenario *scenario)
{
	int largest = 0;

	for (int i = 0; i < scenario->flows; i++)
		if (scenario->flow[i].packet_bytes > largest)
			largest = scenario->flow[i].packet_bytes;
	for (int i = 0; i < scenario->sources; i++)
		if (scenario->source[i].packet_bytes > largest)
			largest = scenario->source[i].packet_bytes;
	return largest;
}
