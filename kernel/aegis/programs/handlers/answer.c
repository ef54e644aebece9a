/* Answers requests for ICMP echo, of any length. */
long send(const void *frame, unsigned long length);

static unsigned long out[190];

/* Six bytes of an address, or four, from one place to another. */
static void move(unsigned char *to, const unsigned char *from, int bytes)
{
	for (int i = 0; i < bytes; i++)
		to[i] = from[i];
}

long message(const unsigned long *in, unsigned long length, unsigned long endpoint)
{
	const unsigned char *from = (const unsigned char *)in;
	unsigned char *to = (unsigned char *)out;
	unsigned int sum;

	if (length < 42 || length > 1514 || from[12] != 8 || from[13] || from[14] != 0x45 ||
	    from[23] != 1 || from[34] != 8)
		return 0;
	for (unsigned long i = 0; i < (length + 7) / 8; i++)
		out[i] = in[i];
	move(to, from + 6, 6);
	move(to + 6, from, 6);
	move(to + 26, from + 30, 4);
	move(to + 30, from + 26, 4);
	/* The type loses 8 of its upper byte, which the sum gains. */
	to[34] = 0;
	sum = (from[36] << 8 | from[37]) + 0x800;
	sum = (sum & 0xffff) + (sum >> 16);
	to[36] = sum >> 8;
	to[37] = sum;
	return send(out, length) == 0;
}
