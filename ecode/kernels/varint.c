/* Numbers in as many bytes as they need, seven bits in each (LEB128): written, then read. */
typedef unsigned long u64;

enum { COUNT = 8192 };

static unsigned char bytes[COUNT * 10];

static unsigned char *put(unsigned char *p, u64 v)
{
	while (v >= 128) {
		*p++ = v | 128;
		v >>= 7;
	}
	*p++ = v;
	return p;
}

static const unsigned char *get(const unsigned char *p, const unsigned char *end, u64 *value)
{
	u64 v = 0;
	int shift = 0;

	while (p < end && shift < 64) {
		unsigned char byte = *p++;

		v |= (u64)(byte & 127) << shift;
		if (byte < 128) {
			*value = v;
			return p;
		}
		shift += 7;
	}
	return 0;
}

long kernel(long rounds)
{
	u64 seed = 88172645463325252ul, sum = 0, value;
	const unsigned char *p;
	unsigned char *end = bytes;
	long round;
	int i;

	for (i = 0; i < COUNT; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		end = put(end, seed >> (seed & 63));
	}
	for (round = 0; round < rounds; round++) {
		p = bytes;
		while (p < end) {
			p = get(p, end, &value);
			if (!p)
				return -1;
			sum += value;
		}
		bytes[round & 7] ^= 1;
	}
	return sum;
}
