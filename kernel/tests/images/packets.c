/* What the tests of hooks load: decides about packets by their UDP port, and has a function for each
 * service. It may loop. */
#include <postern/kernel.h>

unsigned char postern_shared[8192] __attribute__((aligned(4096))) = "shared";
static unsigned long calls;

static unsigned word(const unsigned char *at)
{
	return at[0] << 8 | at[1];
}

/* One more of the port in map 0. */
static void count(unsigned port)
{
	unsigned char key[2] = { port >> 8, port };
	unsigned long many = 0;

	postern_map_find(0, key, sizeof key, &many, sizeof many);
	many++;
	postern_map_set(0, key, sizeof key, &many, sizeof many);
}

static void forbidden(size_t header)
{
	unsigned char byte, done[6];
	size_t places[] = { 0, 2, 9, header + 4 };

	/* What the kernel trusts cannot be changed, but be written as it is. */
	for (int k = 0; k < 4; k++) {
		postern_packet_read(places[k], &byte, 1);
		done[k] = postern_packet_write(places[k], &byte, 1);
		byte ^= 0x11;
		done[k] = done[k] << 4 | postern_packet_write(places[k], &byte, 1);
	}
	done[4] = postern_packet_read(postern_packet_length() - 1, &byte, 1);
	done[5] = postern_packet_read(postern_packet_length(), &byte, 1);
	postern_ring_write(done, sizeof done);
}

POSTERN_EXPORT long filter(const unsigned char *packet, size_t captured, size_t length, long hook)
{
	size_t header = (packet[0] & 15) * 4;

	calls++;
	if (captured < header + 8 || packet[0] >> 4 != 4 || packet[9] != 17)
		return 1;
	unsigned port = word(packet + header + 2);
	count(port);
	switch (port) {
	case 7001:
		return 0;
	case 7002:
		/* An odd place, an odd number of bytes. */
		return postern_packet_write(header + 9, "CHANGED", 7);
	case 7003:
		return *(volatile unsigned char *)0x70000000;
	case 7004:
		forbidden(header);
		return 1;
	case 7005: {
		/* To another port and from another address, with nonsense for the checksums. */
		unsigned char all[28];

		postern_packet_read(0, all, sizeof all);
		all[10] ^= 0x55;
		all[15] = 77;
		all[header + 2] = 7006 >> 8;
		all[header + 3] = 7006 & 255;
		all[header + 6] ^= 0xaa;
		return postern_packet_write(0, all, sizeof all) && hook == POSTERN_INPUT;
	}
	case 7007:
		for (;;)
			count(port);
	default:
		return length >= captured;
	}
}

POSTERN_EXPORT long pass(const unsigned char *packet, size_t captured, size_t length, long hook)
{
	postern_ring_write(packet, captured < 40 ? captured : 40);
	return length > 0 && hook >= 0;
}

POSTERN_EXPORT long tick(uint64_t nanoseconds)
{
	uint64_t *place = (uint64_t *)(postern_shared + 4096);

	place[0]++;
	place[1] = nanoseconds;
	return place[0] < 5;
}

/* Each window's own. */
static volatile unsigned long beats;

POSTERN_EXPORT long beat(uint64_t nanoseconds)
{
	beats++;
	++*(volatile uint64_t *)(postern_shared + 4800);
	return nanoseconds != 0;
}

/* Computes something; 0 if no beat came in between, or one in this window. */
POSTERN_EXPORT long spin(uint64_t turns)
{
	volatile uint64_t *all = (uint64_t *)(postern_shared + 4800);
	uint64_t begun = *all, sum = 1;

	for (uint64_t k = 0; k < turns; k++)
		sum = sum * 31 + k;
	return *all == begun || beats ? 0 : sum;
}

POSTERN_EXPORT long shout(uint64_t size)
{
	static const char text[] = "one\ntwo \x1b[1m and so on";

	return postern_log(text, size ? size : sizeof text - 1);
}

POSTERN_EXPORT long later(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t told[3] = { a, b, c };

	if (a == 666)
		return *(volatile unsigned char *)0x70000000;
	return postern_ring_write(told, sizeof told);
}

POSTERN_EXPORT long post(uint64_t many)
{
	long done = 0;

	for (uint64_t k = 0; k < many; k++)
		done += postern_request("later", 5, k, k * k, 3);
	return done;
}

POSTERN_EXPORT long sum(void)
{
	long sum = 0;

	for (int k = 0; k < 4096; k++)
		sum += postern_shared[k];
	postern_shared[0] = 'S';
	return sum;
}

POSTERN_EXPORT long grow(long more)
{
	char *at = postern_heap(more);

	if (at && more > 0)
		at[0] = at[more - 1] = 1;
	return at != 0;
}

POSTERN_EXPORT long fill(uint64_t size, uint64_t many)
{
	static unsigned char bytes[4096];
	long done = 0;

	for (uint64_t k = 0; k < many; k++) {
		bytes[0] = k;
		done += postern_ring_write(bytes, size);
	}
	return done;
}

/* What ends a call: arguments that no service takes. */
POSTERN_EXPORT long bad(uint64_t which)
{
	unsigned long value = 0;

	switch (which) {
	case 0:
		return postern_ring_write((void *)0xfffff000, 8192);
	case 1:
		return postern_ring_write(&value, 4097);
	case 2:
		return postern_map_find(0, &value, 3, &value, 8);
	case 3:
		return postern_map_find(0, &value, 2, (void *)"read only", 8);
	case 4:
		return postern_map_set(0, (void *)0xdead0000, 2, &value, 8);
	case 5:
		return postern_packet_read(0, (void *)0xfffffff0, 4096);
	case 6:
		return postern_request((void *)16, 5, 0, 0, 0);
	case 7:
		return postern_log(0, 10);
	default:
		/* These are none. */
		return postern_map_find(15, &value, 3, &value, 8) + postern_packet_length() +
		       postern_packet_read(0, &value, 8) + postern_packet_write(0, &value, 8) +
		       postern_ring_write(&value, 0) - 1;
	}
}

POSTERN_EXPORT long clock(uint64_t before)
{
	return postern_time() > before && postern_processor() < 64;
}
