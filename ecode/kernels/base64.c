/* Base64, there and back. */
static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static unsigned char plain[30000], back[30000];
static char coded[40004];
static signed char values[256];

static int encode(const unsigned char *in, int length, char *out)
{
	char *start = out;
	int i;

	for (i = 0; i + 2 < length; i += 3) {
		unsigned v = in[i] << 16 | in[i + 1] << 8 | in[i + 2];

		*out++ = letters[v >> 18];
		*out++ = letters[v >> 12 & 63];
		*out++ = letters[v >> 6 & 63];
		*out++ = letters[v & 63];
	}
	if (i < length) {
		unsigned v = in[i] << 16 | (i + 1 < length ? in[i + 1] << 8 : 0);

		*out++ = letters[v >> 18];
		*out++ = letters[v >> 12 & 63];
		*out++ = i + 1 < length ? letters[v >> 6 & 63] : '=';
		*out++ = '=';
	}
	return out - start;
}

static int decode(const char *in, int length, unsigned char *out)
{
	int i, n = 0;

	for (i = 0; i + 3 < length; i += 4) {
		int a = values[(unsigned char)in[i]], b = values[(unsigned char)in[i + 1]];
		int c = values[(unsigned char)in[i + 2]], d = values[(unsigned char)in[i + 3]];
		int v;

		if (a < 0 || b < 0)
			return -1;
		v = a << 18 | b << 12 | (c < 0 ? 0 : c << 6) | (d < 0 ? 0 : d);
		out[n++] = v >> 16;
		if (c >= 0)
			out[n++] = v >> 8;
		if (d >= 0)
			out[n++] = v;
	}
	return n;
}

long kernel(long rounds)
{
	long round, sum = 0;
	int i;

	for (i = 0; i < 256; i++)
		values[i] = -1;
	for (i = 0; i < 64; i++)
		values[(unsigned char)letters[i]] = i;
	for (i = 0; i < (int)sizeof plain; i++)
		plain[i] = i * 13 ^ i >> 7;
	for (round = 0; round < rounds; round++) {
		int length = encode(plain, sizeof plain, coded);

		sum += decode(coded, length, back) + back[round % 30000];
		plain[round % 30000]++;
	}
	return sum;
}
