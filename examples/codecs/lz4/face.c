/* LZ4 frames from buffer to buffer. Levels are 0 to 12; from 3 on it searches longer. */
#include "codec.h"
#define LZ4F_STATIC_LINKING_ONLY /* the error codes */
#include <lz4frame.h>

static long outcome(size_t code)
{
	if (!LZ4F_isError(code))
		return code;
	switch (LZ4F_getErrorCode(code)) {
	case LZ4F_ERROR_dstMaxSize_tooSmall:
		return CODEC_FULL;
	case LZ4F_ERROR_allocation_failed:
		return CODEC_MEMORY;
	default:
		return CODEC_CORRUPT;
	}
}

static const LZ4F_preferences_t defaults = {
	.frameInfo = { .contentChecksumFlag = LZ4F_contentChecksumEnabled },
};

long compress_buffer(const void *in, size_t size, void *out, size_t room, int level)
{
	LZ4F_preferences_t wish = defaults;
	if (level < 0 || level > 12)
		return CODEC_LEVEL;
	wish.compressionLevel = level;
	wish.frameInfo.contentSize = size;
	return outcome(LZ4F_compressFrame(out, room, in, size, &wish));
}

long decompress_buffer(const void *in, size_t size, void *out, size_t room)
{
	LZ4F_dctx *context;
	size_t read = 0, written = 0, hint = LZ4F_createDecompressionContext(&context, LZ4F_VERSION);
	if (LZ4F_isError(hint))
		return CODEC_MEMORY;
	do {
		size_t part_in = size - read, part_out = room - written;
		hint = LZ4F_decompress(context, (char *)out + written, &part_out,
				       (const char *)in + read, &part_in, NULL);
		read += part_in;
		written += part_out;
		if (!part_in && !part_out)
			break;
	} while (hint && !LZ4F_isError(hint));
	LZ4F_freeDecompressionContext(context);
	if (LZ4F_isError(hint))
		return outcome(hint);
	if (hint)
		return written == room ? CODEC_FULL : CODEC_CORRUPT;
	return written;
}

size_t compress_bound(size_t size)
{
	return LZ4F_compressFrameBound(size, &defaults);
}
