/* Whole connections of ngtcp2, linked unmodified from Debian's package: recovery, pacer, acknowledgements, flow control and path
 * MTU discovery are ngtcp2's. Handshake and packets are not encrypted. NAME and ALGO are those of the controller.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ngtcp2/ngtcp2.h>

#include "stack.h"

#define HEADER_BYTES 28u         /* Of IPv4 and UDP. */
#define LEAST_BYTES 1200u        /* UDP payload of QUIC (RFC 9000, section 14). */
#define MOST_BYTES 65527u
#define WINDOW_BYTES (1u << 27)  /* Of flow control, so that it does not limit. */
#define TAG_BYTES 16u
#define CLIENT 0
#define SERVER 1
#define LEVELS 4

/* A message of the handshake: two bytes of its length, then so many bytes. */
struct heard {
	uint8_t bytes[2048];
	size_t count;
};

struct end {
	struct pair *pair;
	ngtcp2_conn *conn;
	int64_t stream;   /* -1 before it is open. */
	int failed;       /* The connection ended with an error. */
	struct heard heard[LEVELS];
};

struct payload {
	uint8_t *data;
	uint32_t bytes;
	uint64_t next_free;
};

struct pair {
	struct end ends[2];
	uint64_t draws;
	uint64_t packet_bytes, left_bytes, endless, finished;
	uint64_t last_recovery, last_timeouts;
	struct lfn_stack_progress progress;
	struct payload *payloads;
	uint64_t count, room, first_free;
	struct sockaddr_in addresses[2];
};

static uint8_t zeros[1 << 16];
static int handle; /* Of keys, which are none. */

/* Steele, Lea and Flood's SplitMix64. */
static uint64_t draw(struct pair *pair)
{
	uint64_t z = pair->draws += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void fill(struct pair *pair, uint8_t *out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = (uint8_t)draw(pair);
}

static void on_rand(uint8_t *out, size_t count, const ngtcp2_rand_ctx *context)
{
	fill(context->native_handle, out, count);
}

static int on_encrypt(uint8_t *out, const ngtcp2_crypto_aead *aead, const ngtcp2_crypto_aead_ctx *key, const uint8_t *text,
		      size_t count, const uint8_t *nonce, size_t nonce_bytes, const uint8_t *aad, size_t aad_bytes)
{
	(void)aead, (void)key, (void)nonce, (void)nonce_bytes, (void)aad, (void)aad_bytes;
	memmove(out, text, count);
	memset(out + count, 0xab, TAG_BYTES);
	return 0;
}

static int on_decrypt(uint8_t *out, const ngtcp2_crypto_aead *aead, const ngtcp2_crypto_aead_ctx *key, const uint8_t *text,
		      size_t count, const uint8_t *nonce, size_t nonce_bytes, const uint8_t *aad, size_t aad_bytes)
{
	(void)aead, (void)key, (void)nonce, (void)nonce_bytes, (void)aad, (void)aad_bytes;
	if (count < TAG_BYTES || text[count - 1] != 0xab)
		return NGTCP2_ERR_DECRYPT;
	memmove(out, text, count - TAG_BYTES);
	return 0;
}

static int on_mask(uint8_t *out, const ngtcp2_crypto_cipher *cipher, const ngtcp2_crypto_cipher_ctx *key, const uint8_t *sample)
{
	(void)cipher, (void)key, (void)sample;
	memset(out, 0, NGTCP2_HP_MASKLEN);
	return 0;
}

static void on_delete_aead(ngtcp2_conn *conn, ngtcp2_crypto_aead_ctx *key, void *user)
{
	(void)conn, (void)key, (void)user;
}

static void on_delete_cipher(ngtcp2_conn *conn, ngtcp2_crypto_cipher_ctx *key, void *user)
{
	(void)conn, (void)key, (void)user;
}

static int on_connection_id(ngtcp2_conn *conn, ngtcp2_cid *id, uint8_t *token, size_t count, void *user)
{
	struct pair *pair = ((struct end *)user)->pair;

	(void)conn;
	fill(pair, id->data, count);
	id->datalen = count;
	fill(pair, token, NGTCP2_STATELESS_RESET_TOKENLEN);
	return 0;
}

static int on_challenge(ngtcp2_conn *conn, uint8_t *data, void *user)
{
	(void)conn;
	fill(((struct end *)user)->pair, data, NGTCP2_PATH_CHALLENGE_DATALEN);
	return 0;
}

static int on_update_key(ngtcp2_conn *conn, uint8_t *rx, uint8_t *tx, ngtcp2_crypto_aead_ctx *rx_key, uint8_t *rx_iv,
			 ngtcp2_crypto_aead_ctx *tx_key, uint8_t *tx_iv, const uint8_t *old_rx, const uint8_t *old_tx,
			 size_t count, void *user)
{
	(void)conn, (void)rx, (void)tx, (void)old_rx, (void)old_tx, (void)user, (void)count;
	rx_key->native_handle = tx_key->native_handle = &handle;
	memset(rx_iv, 0, 12);
	memset(tx_iv, 0, 12);
	return 0;
}

static const uint8_t iv[12];
static const ngtcp2_crypto_aead_ctx aead = { &handle };
static const ngtcp2_crypto_cipher_ctx cipher = { &handle };

static int initial_keys(ngtcp2_conn *conn)
{
	return ngtcp2_conn_install_initial_key(conn, &aead, iv, &cipher, &aead, iv, &cipher, sizeof(iv));
}

static int handshake_keys(ngtcp2_conn *conn)
{
	int failed = ngtcp2_conn_install_rx_handshake_key(conn, &aead, iv, sizeof(iv), &cipher);

	return failed ? failed : ngtcp2_conn_install_tx_handshake_key(conn, &aead, iv, sizeof(iv), &cipher);
}

static int data_keys(ngtcp2_conn *conn)
{
	static const uint8_t secret[32];
	int failed = ngtcp2_conn_install_rx_key(conn, secret, sizeof(secret), &aead, iv, sizeof(iv), &cipher);

	return failed ? failed : ngtcp2_conn_install_tx_key(conn, secret, sizeof(secret), &aead, iv, sizeof(iv), &cipher);
}

/* Says a message: the end's transport parameters, or nothing. */
static int say(ngtcp2_conn *conn, ngtcp2_crypto_level level, int has_parameters)
{
	uint8_t message[512];
	ngtcp2_ssize count = 0;

	if (has_parameters)
		count = ngtcp2_conn_encode_local_transport_params(conn, message + 2, sizeof(message) - 2);
	if (count < 0)
		return NGTCP2_ERR_CALLBACK_FAILURE;
	message[0] = (uint8_t)(count >> 8);
	message[1] = (uint8_t)count;
	return ngtcp2_conn_submit_crypto_data(conn, level, message, (size_t)count + 2);
}

static int on_client_initial(ngtcp2_conn *conn, void *user)
{
	(void)user;
	return initial_keys(conn) || say(conn, NGTCP2_CRYPTO_LEVEL_INITIAL, 1) ? NGTCP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_server_initial(ngtcp2_conn *conn, const ngtcp2_cid *id, void *user)
{
	(void)id, (void)user;
	return initial_keys(conn) ? NGTCP2_ERR_CALLBACK_FAILURE : 0;
}

/* Answers a message: first a hello of each end, then the server's parameters, then a finish of the client. */
static int answer(struct end *end, ngtcp2_crypto_level level, const uint8_t *data, size_t count)
{
	ngtcp2_conn *conn = end->conn;
	int is_server = end == &end->pair->ends[SERVER], failed = 0;

	if (count > 0)
		failed = ngtcp2_conn_decode_remote_transport_params(conn, data, count);
	if (failed)
		return failed;
	if (is_server && level == NGTCP2_CRYPTO_LEVEL_INITIAL)
		return say(conn, NGTCP2_CRYPTO_LEVEL_INITIAL, 0) || handshake_keys(conn) ||
		       say(conn, NGTCP2_CRYPTO_LEVEL_HANDSHAKE, 1) || data_keys(conn);
	if (is_server) {
		ngtcp2_conn_handshake_completed(conn);
		return 0;
	}
	if (level == NGTCP2_CRYPTO_LEVEL_INITIAL)
		return handshake_keys(conn);
	failed = say(conn, NGTCP2_CRYPTO_LEVEL_HANDSHAKE, 0) || data_keys(conn);
	ngtcp2_conn_handshake_completed(conn);
	return failed;
}

static int on_crypto_data(ngtcp2_conn *conn, ngtcp2_crypto_level level, uint64_t offset, const uint8_t *data, size_t count,
			  void *user)
{
	struct end *end = user;
	struct heard *heard = &end->heard[level % LEVELS];
	size_t length;

	(void)offset;
	end->conn = conn;
	if (count > sizeof(heard->bytes) - heard->count)
		return NGTCP2_ERR_CALLBACK_FAILURE;
	memcpy(heard->bytes + heard->count, data, count);
	heard->count += count;
	if (heard->count < 2)
		return 0;
	length = (size_t)heard->bytes[0] << 8 | heard->bytes[1];
	if (heard->count < length + 2)
		return 0;
	heard->count = 0;
	return answer(end, level, heard->bytes + 2, length) ? NGTCP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_stream_data(ngtcp2_conn *conn, uint32_t flags, int64_t stream, uint64_t offset, const uint8_t *data, size_t count,
			  void *user, void *stream_user)
{
	(void)flags, (void)offset, (void)data, (void)stream_user;
	((struct end *)user)->pair->progress.read_bytes += count;
	ngtcp2_conn_extend_max_stream_offset(conn, stream, count);
	ngtcp2_conn_extend_max_offset(conn, count);
	return 0;
}

static int on_retry(ngtcp2_conn *conn, const ngtcp2_pkt_hd *header, void *user)
{
	(void)conn, (void)header, (void)user;
	return NGTCP2_ERR_CALLBACK_FAILURE;
}

static int on_version(ngtcp2_conn *conn, uint32_t version, const ngtcp2_cid *id, void *user)
{
	(void)conn, (void)version, (void)id, (void)user;
	return NGTCP2_ERR_CALLBACK_FAILURE;
}

/* ngtcp2 tells of lost packets in its qlog alone. */
static void on_qlog(void *user, uint32_t flags, const void *data, size_t count)
{
	(void)flags;
	if (memmem(data, count, "packet_lost", 11))
		((struct end *)user)->pair->progress.lost_packets++;
}

static const ngtcp2_callbacks callbacks = {
	.client_initial = on_client_initial,
	.recv_client_initial = on_server_initial,
	.recv_crypto_data = on_crypto_data,
	.encrypt = on_encrypt,
	.decrypt = on_decrypt,
	.hp_mask = on_mask,
	.recv_stream_data = on_stream_data,
	.recv_retry = on_retry,
	.rand = on_rand,
	.get_new_connection_id = on_connection_id,
	.update_key = on_update_key,
	.delete_crypto_aead_ctx = on_delete_aead,
	.delete_crypto_cipher_ctx = on_delete_cipher,
	.get_path_challenge_data = on_challenge,
	.version_negotiation = on_version,
};

static ngtcp2_path path_of(struct pair *pair, int end)
{
	struct sockaddr_in *own = &pair->addresses[end], *other = &pair->addresses[1 - end];
	ngtcp2_path path = {
		.local = { (ngtcp2_sockaddr *)own, sizeof(*own) },
		.remote = { (ngtcp2_sockaddr *)other, sizeof(*other) },
	};

	return path;
}

/* The connection of an end; the server's answers the Initial packet of this header. */
static int open_end(struct pair *pair, int number, uint64_t now_ns, const ngtcp2_pkt_hd *header)
{
	struct end *end = &pair->ends[number];
	ngtcp2_path path = path_of(pair, number);
	ngtcp2_settings settings;
	ngtcp2_transport_params params;
	ngtcp2_cid own = { .datalen = 8 }, other = { .datalen = 8 };
	ngtcp2_crypto_ctx context = {
		.aead = { &handle, TAG_BYTES },
		.md = { &handle },
		.hp = { &handle },
		.max_encryption = UINT64_MAX,
		.max_decryption_failure = UINT64_MAX,
	};
	int failed;

	fill(pair, own.data, own.datalen);
	ngtcp2_settings_default(&settings);
	settings.cc_algo = ALGO;
	settings.initial_ts = now_ns;
	settings.rand_ctx.native_handle = pair;
	if (pair->packet_bytes - HEADER_BYTES < settings.max_tx_udp_payload_size)
		settings.max_tx_udp_payload_size = pair->packet_bytes - HEADER_BYTES;
	ngtcp2_transport_params_default(&params);
	params.initial_max_data = params.initial_max_stream_data_uni = WINDOW_BYTES;
	params.initial_max_streams_uni = 3;
	if (number == CLIENT) {
		settings.qlog.write = on_qlog;
		fill(pair, other.data, other.datalen);
		failed = ngtcp2_conn_client_new(&end->conn, &other, &own, &path, NGTCP2_PROTO_VER_V1, &callbacks, &settings,
						&params, NULL, end);
	} else {
		params.original_dcid = header->dcid;
		failed = ngtcp2_conn_server_new(&end->conn, &header->scid, &own, &path, header->version, &callbacks, &settings,
						&params, NULL, end);
	}
	if (failed)
		return failed;
	ngtcp2_conn_set_initial_crypto_ctx(end->conn, &context);
	ngtcp2_conn_set_crypto_ctx(end->conn, &context);
	if (number == CLIENT)
		ngtcp2_conn_set_retry_aead(end->conn, &context.aead, &aead);
	return 0;
}

static void destroy(void *state)
{
	struct pair *pair = state;

	for (int i = 0; i < 2; i++)
		ngtcp2_conn_del(pair->ends[i].conn);
	for (uint64_t i = 0; i < pair->count; i++)
		free(pair->payloads[i].data);
	free(pair->payloads);
	free(pair);
}

static void *create(const struct lfn_stack_setup *setup)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	if (!pair || setup->packet_bytes < LEAST_BYTES + HEADER_BYTES) {
		free(pair);
		return NULL;
	}
	pair->draws = setup->seed;
	pair->packet_bytes = setup->packet_bytes;
	pair->left_bytes = setup->size_bytes;
	pair->endless = setup->size_bytes == UINT64_MAX;
	pair->first_free = UINT64_MAX;
	for (int i = 0; i < 2; i++) {
		pair->ends[i] = (struct end){ .pair = pair, .stream = -1 };
		pair->addresses[i].sin_family = AF_INET;
		pair->addresses[i].sin_port = htons(4433);
		pair->addresses[i].sin_addr.s_addr = htonl(0x0a000001u + (uint32_t)i);
	}
	if (open_end(pair, CLIENT, setup->now_ns, NULL)) {
		destroy(pair);
		return NULL;
	}
	return pair;
}

static uint64_t keep(struct pair *pair, const uint8_t *data, uint32_t bytes)
{
	uint64_t id = pair->first_free;

	if (id == UINT64_MAX) {
		if (pair->count == pair->room) {
			pair->room = pair->room ? 2 * pair->room : 1024;
			pair->payloads = realloc(pair->payloads, pair->room * sizeof(*pair->payloads));
		}
		id = pair->count++;
		pair->payloads[id].data = NULL;
	} else {
		pair->first_free = pair->payloads[id].next_free;
	}
	pair->payloads[id] = (struct payload){ .data = malloc(bytes), .bytes = bytes };
	memcpy(pair->payloads[id].data, data, bytes);
	return id;
}

static void forget(void *state, uint64_t id)
{
	struct pair *pair = state;

	free(pair->payloads[id].data);
	pair->payloads[id].data = NULL;
	pair->payloads[id].next_free = pair->first_free;
	pair->first_free = id;
}

/* The next packet of an end, with data of the client's stream if there are any. */
static ngtcp2_ssize write_packet(struct pair *pair, struct end *end, ngtcp2_pkt_info *info, uint8_t *out, size_t room,
				 uint64_t now_ns)
{
	if (end == &pair->ends[CLIENT] && end->stream < 0 && ngtcp2_conn_get_handshake_completed(end->conn) &&
	    ngtcp2_conn_open_uni_stream(end->conn, &end->stream, NULL))
		end->stream = -1;
	if (end->stream >= 0 && !pair->finished) {
		uint64_t offered = pair->left_bytes < sizeof(zeros) ? pair->left_bytes : sizeof(zeros);
		ngtcp2_vec data = { zeros, offered };
		int is_last = !pair->endless && offered == pair->left_bytes;
		ngtcp2_ssize taken = -1;
		ngtcp2_ssize count = ngtcp2_conn_writev_stream(
			end->conn, NULL, info, out, room, &taken,
			is_last ? NGTCP2_WRITE_STREAM_FLAG_FIN : NGTCP2_WRITE_STREAM_FLAG_NONE, end->stream, &data, 1, now_ns);

		if (taken > 0 && !pair->endless)
			pair->left_bytes -= (uint64_t)taken;
		if (taken >= 0 && is_last && pair->left_bytes == 0)
			pair->finished = 1;
		if (count != NGTCP2_ERR_STREAM_DATA_BLOCKED && count != NGTCP2_ERR_STREAM_SHUT_WR)
			return count;
	}
	return ngtcp2_conn_write_pkt(end->conn, NULL, info, out, room, now_ns);
}

static int transmit(void *state, uint32_t number, uint64_t now_ns, struct lfn_stack_datagram *datagram)
{
	struct pair *pair = state;
	struct end *end = &pair->ends[number];
	uint8_t out[MOST_BYTES];
	size_t room = pair->packet_bytes - HEADER_BYTES < MOST_BYTES ? pair->packet_bytes - HEADER_BYTES : MOST_BYTES;
	ngtcp2_pkt_info info = { 0 };
	ngtcp2_ssize count;

	if (!end->conn || end->failed)
		return 0;
	count = write_packet(pair, end, &info, out, room, now_ns);
	if (count < 0)
		end->failed = 1;
	if (count <= 0)
		return 0;
	/* Its pacer counts from here; an application may send several packets before. */
	ngtcp2_conn_update_pkt_tx_time(end->conn, now_ns);
	datagram->bytes = (uint32_t)count + HEADER_BYTES;
	datagram->ecn = info.ecn;
	datagram->id = keep(pair, out, (uint32_t)count);
	return 1;
}

static void receive(void *state, uint32_t number, uint64_t now_ns, uint64_t id, uint32_t ecn)
{
	struct pair *pair = state;
	struct end *end = &pair->ends[number];
	const struct payload *payload = &pair->payloads[id];
	ngtcp2_pkt_info info = { .ecn = ecn };
	ngtcp2_path path = path_of(pair, (int)number);
	ngtcp2_pkt_hd header;

	if (!end->conn) {
		if (number != SERVER || ngtcp2_accept(&header, payload->data, payload->bytes) ||
		    open_end(pair, SERVER, now_ns, &header))
			return;
	}
	if (!end->failed && ngtcp2_conn_read_pkt(end->conn, &path, &info, payload->data, payload->bytes, now_ns))
		end->failed = 1;
}

static uint64_t timeout(void *state, uint32_t number)
{
	struct end *end = &((struct pair *)state)->ends[number];

	return end->conn && !end->failed ? ngtcp2_conn_get_expiry(end->conn) : UINT64_MAX;
}

static void timer(void *state, uint32_t number, uint64_t now_ns)
{
	struct end *end = &((struct pair *)state)->ends[number];

	if (end->conn && !end->failed && ngtcp2_conn_handle_expiry(end->conn, now_ns))
		end->failed = 1;
}

static void stop(void *state, uint64_t now_ns)
{
	struct pair *pair = state;

	(void)now_ns;
	pair->left_bytes = 0;
	pair->endless = 0;
}

static void progress(void *state, struct lfn_stack_progress *out)
{
	struct pair *pair = state;
	struct lfn_stack_progress *told = &pair->progress;
	ngtcp2_conn_stat stat;

	ngtcp2_conn_get_conn_stat(pair->ends[CLIENT].conn, &stat);
	told->window_bytes = stat.cwnd;
	told->ssthresh_bytes = stat.ssthresh;
	told->in_flight_bytes = stat.bytes_in_flight;
	told->pacing_Bps = stat.pacing_rate > 0 ? (uint64_t)(stat.pacing_rate * 1e9) : 0;
	if (stat.first_rtt_sample_ts != UINT64_MAX) {
		told->srtt_ns = stat.smoothed_rtt;
		told->rtt_ns = stat.latest_rtt;
		told->min_rtt_ns = stat.min_rtt;
	}
	if (stat.congestion_recovery_start_ts != UINT64_MAX && stat.congestion_recovery_start_ts != pair->last_recovery) {
		pair->last_recovery = stat.congestion_recovery_start_ts;
		told->reductions++;
	}
	if (stat.pto_count > pair->last_timeouts)
		told->timeouts += stat.pto_count - pair->last_timeouts;
	pair->last_timeouts = stat.pto_count;
	told->segment_bytes = stat.max_tx_udp_payload_size;
	*out = *told;
}

static const struct lfn_stack stack = {
	.version = LFN_STACK_VERSION,
	.name = NAME,
	.create = create,
	.destroy = destroy,
	.transmit = transmit,
	.receive = receive,
	.timeout = timeout,
	.timer = timer,
	.stop = stop,
	.forget = forget,
	.progress = progress,
};

const struct lfn_stack *lfn_stack(void)
{
	return &stack;
}
