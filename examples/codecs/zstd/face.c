/* Zstandard frames from buffer to buffer. Levels are 1 to 22; from 20 on they take much memory. */
#include "codec.h"
#include <zstd.h>
#include <zstd_errors.h>

static long outcome(size_t code)
{
	switch (ZSTD_getErrorCode(code)) {
	case ZSTD_error_no_error:
		return code;
	case ZSTD_error_dstSize_tooSmall:
		return CODEC_FULL;
	case ZSTD_error_memory_allocation:
		return CODEC_MEMORY;
	default:
		return CODEC_CORRUPT;
	}
}

long compress_buffer(const void *in, size_t size, void *out, size_t room, int level)
{
	if (level < 1 || level > ZSTD_maxCLevel())
		return CODEC_LEVEL;
	return outcome(ZSTD_compress(out, room, in, size, level));
}

long decompress_buffer(const void *in, size_t size, void *out, size_t room)
{
	return outcome(ZSTD_decompress(out, room, in, size));
}

size_t compress_bound(size_t size)
{
	return ZSTD_compressBound(size);
}
