// SPDX-License-Identifier: GPL-2.0
/*
 * The C library's getrandom(2), from which this kernel draws what it cannot know: here a sequence that LFN_SEED of
 * the environment begins, so that a run with the same seed is the same run.
 */
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/types.h>

char *getenv(const char *name);
ssize_t getrandom(void *buffer, size_t bytes, unsigned int flags);

/* SplitMix64. */
static u64 next(void)
{
	static u64 state;
	static bool seeded;
	u64 z;

	if (!seeded) {
		const char *said = getenv("LFN_SEED");

		state = said ? simple_strtoull(said, NULL, 10) : 0;
		seeded = true;
	}
	z = state += 0x9E3779B97F4A7C15ULL;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ULL;
	z = (z ^ z >> 27) * 0x94D049BB133111EBULL;
	return z ^ z >> 31;
}

ssize_t getrandom(void *buffer, size_t bytes, unsigned int flags)
{
	size_t at;

	(void)flags;
	for (at = 0; at < bytes; at += sizeof(u64)) {
		u64 word = next();

		memcpy(buffer + at, &word, min(bytes - at, sizeof(word)));
	}
	return bytes;
}
