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

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end || value < least)
		wrong("not a whole number, or too small", text);
	return value;
}

static enum direction direction(const char *text)
{
	if (text && !strcmp(text, "forward"))
		return FORWARD;
	if (text && !strcmp(text, "reverse"))
		return REVERSE;
	wrong("neither forward nor reverse", text ? text : "");
	return FORWARD;
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
		else if (strcmp(key, "seed")) /* linux/run takes it */
			wrong("a run has duration_us, sample_us, seed, record_bytes", key);
	}
}

static void read_link(struct scenario *scenario, char *rest)
{
	struct link *link = &scenario->links[direction(strtok_r(NULL, " \n", &rest))];
	char *key, *value;

	link->present = 1;
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
		else
			wrong("a link has rate_bps, delay_ns, hold_ns, jitter_ns, jitter_seed", key);
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
		else if (!strcmp(key, "write_bps"))
			flow->write_bps = number(value, 1);
		else if (!strcmp(key, "on_us"))
			flow->on_us = number(value, 1);
		else if (!strcmp(key, "off_us"))
			flow->off_us = number(value, 1);
		else
			wrong("no such key of a flow", key);
	}
	if (!*flow->law)
		wrong("a flow needs", "law");
	if (!flow->on_us != !flow->off_us || (flow->on_us && !flow->write_bps))
		wrong("a flow that pauses needs", "write_bps, on_us and off_us");
}

static void read_change(struct scenario *scenario, char *rest)
{
	struct change *change = &scenario->change[scenario->changes];
	char *key, *value;

	if (scenario->changes++ == MAX_CHANGES)
		wrong("too many changes", "");
	change->at_us = number(strtok_r(NULL, " \n", &rest), 0);
	change->link = direction(strtok_r(NULL, " \n", &rest));
	while (pair(&rest, &key, &value)) {
		if (!strcmp(key, "rate_bps")) {
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

static void read_gaps(struct scenario *scenario, const char *kind, char *rest)
{
	struct link *link = &scenario->links[direction(strtok_r(NULL, " \n", &rest))];
	struct gaps *gaps = !strcmp(kind, "lost") ? &link->lost
			    : !strcmp(kind, "held") ? &link->held
			    : !strcmp(kind, "unopened") ? &link->unopened
						    : &link->duplicated;
	char *word;

	while ((word = strtok_r(NULL, " \n", &rest))) {
		gaps->values = realloc(gaps->values, (gaps->count + 1) * sizeof *gaps->values);
		gaps->values[gaps->count++] = number(word, 0);
	}
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
	else if (!strcmp(kind, "at"))
		read_change(scenario, rest);
	else if (!strcmp(kind, "lost") || !strcmp(kind, "held") || !strcmp(kind, "duplicated") ||
		 !strcmp(kind, "unopened"))
		read_gaps(scenario, kind, rest);
	else if (!strcmp(kind, "sysctl"))
		read_sysctl(scenario, rest);
	else if (!strcmp(kind, "queue")) {
		struct link *link = &scenario->links[direction(strtok_r(NULL, " \n", &rest))];

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
}

int scenario_mtu(const struct scenario *scenario)
{
	int largest = 0;

	for (int i = 0; i < scenario->flows; i++)
		if (scenario->flow[i].packet_bytes > largest)
			largest = scenario->flow[i].packet_bytes;
	return largest;
}
