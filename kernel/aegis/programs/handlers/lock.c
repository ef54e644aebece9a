/* A lock, for clients on the network: who asks for it gets it if it is free, who has it gives it back. Requests come by UDP:
 * two bytes with the client's number, one before them with 1 to take it and 2 to release it. In the answer the byte two before
 * that is 1 if this was done. The owner shares the lock, and counts what was granted. */
struct shared {
	volatile unsigned long holder, granted, refused;
};

long send(const void *frame, unsigned long length);

static unsigned long out[8];

long message(const unsigned long *in, unsigned long length, unsigned long endpoint)
{
	struct shared *shared = (struct shared *)0x100000;
	unsigned char *bytes = (unsigned char *)out;
	unsigned long client;

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
	client = bytes[48] << 8 | bytes[49];
	if (bytes[47] == 1 && !shared->holder) {
		shared->holder = client;
		shared->granted++;
		bytes[45] = 1;
	} else if (bytes[47] == 2 && shared->holder == client) {
		shared->holder = 0;
		bytes[45] = 1;
	} else {
		shared->refused++;
	}
	return send(out, 60) == 0;
}
