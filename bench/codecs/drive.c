/* A codec's work for the benchmark: half a megabyte of words, compressed and decompressed. Both functions do the same work in each
 * call and return a checksum, as the kernels do. LEVEL is the codec's level. */
#include "codec.h"
#include <string.h>

enum { SIZE = 1 << 19, ROOM = SIZE + SIZE / 2 };

static unsigned char text[SIZE], packed[ROOM], back[SIZE];
static long length;

/* What a build without C's library does to have its heap back before each call. */
__attribute__((weak)) void begin_anew(void);

static unsigned next(unsigned *state) { return *state = *state * 1664525u + 1013904223u, *state >> 16; }

/* Words of one to eight letters from a vocabulary of 2048, the first of which are the most frequent. */
static void write_text(void)
{
	unsigned state = 1, at = 0;
	while (at < SIZE) {
		unsigned word = next(&state) & next(&state) & 2047, letters = 1 + word * 2654435761u % 8;
		for (unsigned k = 0; k < letters && at < SIZE; k++)
			text[at++] = (unsigned char)('a' + ((word + 1) * (k + 7) * 40503u >> 5) % 26);
		if (at < SIZE)
			text[at++] = next(&state) % 12 ? ' ' : '\n';
	}
}

static unsigned long long mix(const unsigned char *bytes, long size)
{
	unsigned long long sum = (unsigned long long)size;
	for (long k = 0; k < size; k += 61)
		sum = sum * 1099511628211u + bytes[k];
	return sum;
}

POSTERN_EXPORT unsigned long long compress_once(void)
{
	if (!text[0])
		write_text();
	if (begin_anew)
		begin_anew();
	length = compress_buffer(text, SIZE, packed, ROOM, LEVEL);
	return length > 0 ? mix(packed, length) : 0;
}

POSTERN_EXPORT unsigned long long decompress_once(void)
{
	if (length <= 0)
		compress_once();
	if (begin_anew)
		begin_anew();
	long size = decompress_buffer(packed, (size_t)length, back, SIZE);
	return size == SIZE && !memcmp(text, back, SIZE) ? mix(back, size) : 0;
}
