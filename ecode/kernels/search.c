/* String search after Boyer, Moore and Horspool, and a plain one for short needles. */
static char text[65536];
static int skip[256];

static int length_of(const char *s)
{
	int n = 0;

	while (s[n])
		n++;
	return n;
}

static int horspool(const char *hay, int length, const char *needle)
{
	int n = length_of(needle), at, i;

	for (i = 0; i < 256; i++)
		skip[i] = n;
	for (i = 0; i < n - 1; i++)
		skip[(unsigned char)needle[i]] = n - 1 - i;
	for (at = 0; at <= length - n; at += skip[(unsigned char)hay[at + n - 1]]) {
		for (i = n - 1; i >= 0 && hay[at + i] == needle[i]; i--)
			;
		if (i < 0)
			return at;
	}
	return -1;
}

static const char *plain(const char *hay, const char *needle)
{
	for (; *hay; hay++) {
		const char *a = hay, *b = needle;

		while (*b && *a == *b)
			a++, b++;
		if (!*b)
			return hay;
	}
	return 0;
}

long kernel(long rounds)
{
	unsigned seed = 1;
	long round, sum = 0;
	int i;

	for (i = 0; i < (int)sizeof text - 1; i++) {
		seed = seed * 1103515245 + 12345;
		text[i] = "etaoin shrdlu"[(seed >> 16) % 13];
	}
	for (i = 0; i < 8; i++)
		text[60000 + i] = "needle z"[i];
	for (round = 0; round < rounds; round++) {
		const char *found = plain(text, "needle");

		sum += horspool(text, sizeof text - 1, "needle z");
		if (found)
			sum += found - text;
		text[round % 50000] = 'x';
	}
	return sum;
}
