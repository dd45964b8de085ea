/* A controller of aioquic, which is Python, behind controller.h: each connection has a process, serve.py, to which calls go through
 * a pipe. STACK and NAME are those of the controller.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controller.h"

/* By which a run's identity knows the other files. */
const char lfn_source[] = SOURCE;

enum call { CREATE, SENT, ACKED, LOST, ACK, TIMEOUT, TIMEOUT_AGAIN };

struct record {
	uint32_t kind, bytes;
	uint64_t now_ns, number, sent_ns, rtt_ns, unused[2];
};

struct peer {
	FILE *calls;
	int windows;
	pid_t process;
	uint64_t srtt_ns;
	uint32_t packet_bytes;
};

static void fail(const char *what)
{
	fprintf(stderr, STACK ":" NAME ": %s: %s\n", what, strerror(errno));
	abort();
}

/* aioquic's pacer sends a window in a smoothed round trip. */
static void decide(struct peer *peer, uint64_t window_bytes, struct lfn_control *control)
{
	control->window_bytes = window_bytes;
	if (peer->srtt_ns > 0)
		control->pacing_Bps = (uint64_t)((double)window_bytes * 1e9 / (double)peer->srtt_ns) + 1;
}

static void call(struct peer *peer, const struct record *record, struct lfn_control *control)
{
	uint64_t window_bytes;

	if (fwrite(record, sizeof(*record), 1, peer->calls) != 1)
		fail("a call");
	if (record->kind == SENT || record->kind == ACKED || record->kind == LOST)
		return;
	if (fflush(peer->calls) || read(peer->windows, &window_bytes, sizeof(window_bytes)) != sizeof(window_bytes))
		fail("its process ended");
	decide(peer, window_bytes, control);
}

static pid_t start(int in[2], int out[2])
{
	char python[4096], script[4096];
	Dl_info own;
	pid_t process;

	if (!dladdr((void *)start, &own))
		fail("its place");
	int folder = (int)(strrchr(own.dli_fname, '/') - own.dli_fname);

	snprintf(python, sizeof(python), "%.*s/environment/bin/python", folder, own.dli_fname);
	snprintf(script, sizeof(script), "%.*s/serve.py", folder, own.dli_fname);
	process = fork();
	if (process != 0)
		return process;
	dup2(in[0], 0);
	dup2(out[1], 1);
	execl(python, python, "-I", script, NAME, (char *)NULL);
	_exit(127);
}

static void *create(const struct lfn_config *config, struct lfn_control *control)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	struct record record = { .kind = CREATE, .bytes = config->packet_bytes, .now_ns = config->now_ns };
	int in[2], out[2];

	if (!peer || pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return NULL;
	peer->process = start(in, out);
	close(in[0]);
	close(out[1]);
	peer->calls = fdopen(in[1], "w");
	peer->windows = out[0];
	peer->packet_bytes = config->packet_bytes;
	peer->srtt_ns = config->srtt_ns;
	call(peer, &record, control);
	return peer;
}

static void destroy(void *state)
{
	struct peer *peer = state;

	fclose(peer->calls);
	close(peer->windows);
	waitpid(peer->process, NULL, 0);
	free(peer);
}

static void of_packet(void *state, enum call kind, uint64_t now_ns, const struct lfn_packet *packet, struct lfn_control *control)
{
	struct record record = { .kind = kind, .bytes = packet->bytes, .now_ns = now_ns, .number = packet->number,
				 .sent_ns = packet->sent_ns };

	call(state, &record, control);
}

static void sent(void *state, uint64_t now_ns, const struct lfn_packet *packet, uint64_t in_flight, struct lfn_control *control)
{
	(void)in_flight;
	of_packet(state, SENT, now_ns, packet, control);
}

static void acked(void *state, uint64_t now_ns, const struct lfn_packet *packet, struct lfn_control *control)
{
	of_packet(state, ACKED, now_ns, packet, control);
}

static void lost(void *state, uint64_t now_ns, const struct lfn_packet *packet, struct lfn_control *control)
{
	of_packet(state, LOST, now_ns, packet, control);
}

static void ack(void *state, const struct lfn_ack *ack, struct lfn_control *control)
{
	struct peer *peer = state;
	struct record record = { .kind = ACK, .now_ns = ack->now_ns, .rtt_ns = ack->rtt_ns };

	if (ack->srtt_ns > 0)
		peer->srtt_ns = ack->srtt_ns;
	call(peer, &record, control);
}

static void event(void *state, uint64_t now_ns, uint32_t event, uint64_t in_flight, struct lfn_control *control)
{
	struct record record = { .now_ns = now_ns };

	(void)in_flight;
	if (event != LFN_EVENT_TIMEOUT && event != LFN_EVENT_TIMEOUT_AGAIN)
		return;
	record.kind = event == LFN_EVENT_TIMEOUT ? TIMEOUT : TIMEOUT_AGAIN;
	call(state, &record, control);
}

static const struct lfn_controller controller = {
	.version = LFN_CONTROLLER_VERSION,
	.name = STACK ":" NAME,
	.create = create,
	.destroy = destroy,
	.sent = sent,
	.acked = acked,
	.lost = lost,
	.ack = ack,
	.event = event,
};

const struct lfn_controller *lfn_controller(void)
{
	return &controller;
}
