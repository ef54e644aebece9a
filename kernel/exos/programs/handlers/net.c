/* Answers questions for this machine's address (ARP) and echoes (ICMP) in the kernel, when they arrive, whoever has the processor
 * then. What is not plain and right goes on to the service `net`, whose handler this is; so do questions, from which it hears
 * who is where. */
long send(const void *frame, unsigned long length);

/* Shared with the service. Addresses as they stand in frames, the first byte the lowest; 0: none yet. */
struct shared {
	volatile unsigned long hardware, address;
	volatile unsigned long questions, echoes, unsent;
};

#define SHARED ((struct shared *)0x100000)

static unsigned long out[190];

static unsigned long half(const unsigned char *at)
{
	return (unsigned long)at[0] << 8 | at[1];
}

/* So many bytes, the first one the lowest. */
static unsigned long bytes(const unsigned char *at, int count)
{
	unsigned long all = 0;

	for (int i = 0; i < count; i++)
		all |= (unsigned long)at[i] << 8 * i;
	return all;
}

static void move(unsigned char *to, const unsigned char *from, int count)
{
	for (int i = 0; i < count; i++)
		to[i] = from[i];
}

/* The sum of the 16-bit words of an even place on, and of `sum` (RFC 1071); a word of an odd length ends with zeros. */
static unsigned long summed(unsigned long sum, const unsigned char *at, unsigned long count)
{
	unsigned long i;

	for (i = 0; i + 1 < count; i += 2)
		sum += half(at + i);
	if (i < count)
		sum += (unsigned long)at[i] << 8;
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* Whether an address of IP may be one other host's: not a group's, nobody's, a loopback's or this machine's. */
static int is_other(unsigned long address)
{
	unsigned long first = address & 0xff;

	return first != 127 && first < 224 && address != SHARED->address;
}

static int sent(unsigned long length)
{
	if (send(out, length < 60 ? 60 : length) == 0)
		return 1;
	SHARED->unsent++;
	return 0;
}

/* A question of ARP: who sends it, of both layers, stands in bytes 22 to 31, and whom it is for in 38 to 41. */
static void question(const unsigned char *from)
{
	unsigned char *to = (unsigned char *)out;
	unsigned long sender = bytes(from + 6, 6), own = SHARED->hardware;

	if (half(from + 14) != 1 || half(from + 16) != 0x800 || half(from + 18) != 0x604 || half(from + 20) != 1 ||
	    bytes(from + 38, 4) != SHARED->address || bytes(from + 22, 6) != sender || sender & 1 || !sender || sender == own ||
	    !is_other(bytes(from + 28, 4)))
		return;
	for (int i = 0; i < 8; i++)
		out[i] = 0;
	move(to, from + 6, 6);
	move(to + 6, (unsigned char *)&SHARED->hardware, 6);
	move(to + 12, from + 12, 8);
	to[21] = 2;
	move(to + 22, to + 6, 6);
	move(to + 28, from + 38, 4);
	move(to + 32, from + 22, 10);
	if (sent(60))
		SHARED->questions++;
}

/* An echo in a whole datagram without options. 1: it was answered. */
static long echo(const unsigned long *in, unsigned long length)
{
	const unsigned char *from = (const unsigned char *)in;
	unsigned char *to = (unsigned char *)out;
	unsigned long all = half(from + 16), sum, source = bytes(from + 26, 4);

	if (from[14] != 0x45 || from[23] != 1 || half(from + 34) != 0x800 || half(from + 20) & 0x3fff || all < 28 ||
	    all + 14 > length || bytes(from, 6) != SHARED->hardware || from[6] & 1 || bytes(from + 30, 4) != SHARED->address ||
	    !source || !is_other(source) || summed(0, from + 14, 20) != 0xffff || summed(0, from + 34, all - 20) != 0xffff)
		return 0;
	/* What stands behind it in the frame does not go back. */
	for (unsigned long i = 0; i < 190 && i * 8 < length; i++)
		out[i] = in[i];
	for (unsigned long i = all + 14; i < 60; i++)
		to[i] = 0;
	move(to, from + 6, 6);
	move(to + 6, from, 6);
	move(to + 26, from + 30, 4);
	move(to + 30, from + 26, 4);
	/* It begins its way anew. */
	to[22] = 64;
	to[24] = to[25] = 0;
	sum = ~summed(0, to + 14, 20);
	to[24] = sum >> 8;
	to[25] = sum;
	/* The type loses 8 of its upper byte, which the sum gains. */
	to[34] = 0;
	sum = half(from + 36) + 0x800;
	sum = (sum & 0xffff) + (sum >> 16);
	to[36] = sum >> 8;
	to[37] = sum;
	if (!sent(all + 14))
		return 0;
	SHARED->echoes++;
	return 1;
}

long message(const unsigned long *in, unsigned long length, unsigned long endpoint)
{
	const unsigned char *from = (const unsigned char *)in;

	if (length < 42 || length > 1514 || !SHARED->address)
		return 0;
	switch (half(from + 12)) {
	case 0x806:
		question(from);
		return 0;
	case 0x800:
		return echo(in, length);
	}
	return 0;
}
