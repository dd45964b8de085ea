// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "fail.h"
#include "guest.h"
#include "network.h"
#include "summary.h"

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

/* A file of the kernel's, into TAG.ending. */
static void copy(const char *from, const char *tag, const char *ending)
{
	static char part[1 << 20];
	char to[300];
	FILE *in = fopen(from, "r"), *out;
	size_t bytes;

	snprintf(to, sizeof to, "/host/%s.%s", tag, ending);
	out = fopen(to, "w");
	if (!in || !out)
		fail("%s, %s: %m", from, to);
	while ((bytes = fread(part, 1, sizeof part, in)))
		if (fwrite(part, 1, bytes, out) != bytes)
			fail("%s: %m", to);
	fclose(in);
	if (fclose(out))
		fail("%s: %m", to);
}

void write_summary(const struct scenario *scenario, const char *tag)
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
	for (int way = 0; way < 2 * scenario->wires; way++)
		if (is_dual(&scenario->links[way])) {
			copy("/proc/lfn_queues", tag, "queues");
			break;
		}
	if (scenario->record_bytes)
		copy("/proc/lfn_records", tag, "records");
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
