/* What every codec exports: one buffer to another, both in the window. */
#include <stddef.h>
#include <postern/extension.h>

/* Bytes written, or a negative number: CODEC_FULL if `room` is too small, CODEC_CORRUPT if the input is not what the codec
 * makes, CODEC_MEMORY if the heap is too small, CODEC_LEVEL if there is no such level. */
#define CODEC_FULL -1
#define CODEC_CORRUPT -2
#define CODEC_MEMORY -3
#define CODEC_LEVEL -4

POSTERN_EXPORT long compress_buffer(const void *in, size_t size, void *out, size_t room, int level);
POSTERN_EXPORT long decompress_buffer(const void *in, size_t size, void *out, size_t room);

/* The most bytes that compressing `size` bytes can take. */
POSTERN_EXPORT size_t compress_bound(size_t size);
