/* As pong.c; then the time is stored in the shared page, in a word of the message's own, and the message goes on to the
 * ring. */
unsigned long now(void);
long send(const void *frame, unsigned long length);

static unsigned long out[8], count;

long message(const unsigned long *in, unsigned long length, unsigned long endpoint)
{
	volatile unsigned long *when;
	unsigned char *counter = (unsigned char *)out + 42;

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
	if (!++counter[7] && !++counter[6] && !++counter[5] && !++counter[4] && !++counter[3] &&
	    !++counter[2] && !++counter[1])
		++counter[0];
	send(out, 60);
	when = (volatile unsigned long *)0x100000;
	when[count++ & 63] = now();
	return 0;
}
