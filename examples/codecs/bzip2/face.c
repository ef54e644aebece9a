/* bzip2's format from buffer to buffer. Levels are 1 to 9. */
#include "codec.h"
#include <bzlib.h>
#include <stdlib.h>

/* What the library calls if it finds itself broken. */
void bz_internal_error(int code)
{
	(void)code;
	abort();
}

static long outcome(int status, unsigned written)
{
	switch (status) {
	case BZ_OK:
		return written;
	case BZ_OUTBUFF_FULL:
		return CODEC_FULL;
	case BZ_MEM_ERROR:
		return CODEC_MEMORY;
	case BZ_PARAM_ERROR:
		return CODEC_LEVEL;
	default:
		return CODEC_CORRUPT;
	}
}

long compress_buffer(const void *in, size_t size, void *out, size_t room, int level)
{
	unsigned written = room;
	int status = BZ2_bzBuffToBuffCompress(out, &written, (char *)in, size, level, 0, 0);
	return outcome(status, written);
}

long decompress_buffer(const void *in, size_t size, void *out, size_t room)
{
	unsigned written = room;
	int status = BZ2_bzBuffToBuffDecompress(out, &written, (char *)in, size, 0, 0);
	return outcome(status, written);
}

size_t compress_bound(size_t size)
{
	return size + size / 100 + 600;
}
