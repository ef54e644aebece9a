/* zlib's format (RFC 1950) from buffer to buffer. */
#include "codec.h"
#include <zlib.h>

static long outcome(int status, uLong written)
{
	switch (status) {
	case Z_OK:
		return written;
	case Z_BUF_ERROR:
		return CODEC_FULL;
	case Z_MEM_ERROR:
		return CODEC_MEMORY;
	case Z_STREAM_ERROR:
		return CODEC_LEVEL;
	default:
		return CODEC_CORRUPT;
	}
}

long compress_buffer(const void *in, size_t size, void *out, size_t room, int level)
{
	uLong written = room;
	int status = compress2(out, &written, in, size, level);
	return outcome(status, written);
}

long decompress_buffer(const void *in, size_t size, void *out, size_t room)
{
	uLong written = room, used = size;
	int status = uncompress2(out, &written, in, &used);
	/* An input that ends too early is one, not a lack of room. */
	if (status == Z_BUF_ERROR && written < room)
		status = Z_DATA_ERROR;
	return outcome(status, written);
}

size_t compress_bound(size_t size)
{
	return compressBound(size);
}
