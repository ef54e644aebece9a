/* Answers by UDP: the same message with its addresses and ports the other way round. */
#pragma once

long send(const void *frame, unsigned long length);

/* The frame that goes out: 60 bytes of it are used. */
static unsigned long out[8];

/* Whether a message is one of UDP, of 60 bytes at least; then `out` has what goes back. */
static int turned(const unsigned long *in, unsigned long length)
{
	/* UDP in IP without options. */
	if (length < 60 || (in[1] >> 32 & 0xffffff) != 0x450008 || in[2] >> 56 != 17)
		return 0;
	/* Addresses of both layers and ports change places. */
	out[0] = in[0] >> 48 | (in[1] & 0xffffffff) << 16 | in[0] << 48;
	out[1] = (in[0] >> 16 & 0xffffffff) | in[1] >> 32 << 32;
	out[2] = in[2];
	out[3] = (in[3] & 0xffff) | in[3] >> 48 << 16 | (in[4] & 0xffff) << 32 |
		 (in[3] >> 16 & 0xffff) << 48;
	out[4] = (in[3] >> 32 & 0xffff) | (in[4] >> 32 & 0xffff) << 16 |
		 (in[4] >> 16 & 0xffff) << 32 | in[4] >> 48 << 48;
	/* No sum. */
	out[5] = in[5] >> 16 << 16;
	out[6] = in[6];
	out[7] = in[7];
	return 1;
}
