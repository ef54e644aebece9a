/*
 * Turns a binary PPM picture (P6, 8 bits a sample) to grey, in place.
 *
 * Returns the number of pixels, or a negative number for a picture that it does not understand. The header is parsed
 * here, inside the domain: a malformed picture is this extension's problem and nobody else's.
 */

static int is_space(unsigned char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Reads a decimal number and the one white space behind it. Comments run from # to the end of the line. */
static long number(const unsigned char **at, const unsigned char *end)
{
	const unsigned char *p = *at;
	long n = 0;
	while (p < end && (is_space(*p) || *p == '#')) {
		if (*p == '#')
			while (p < end && *p != '\n')
				p++;
		else
			p++;
	}
	if (p == end || *p < '0' || *p > '9')
		return -1;
	while (p < end && *p >= '0' && *p <= '9' && n < 1000000)
		n = n * 10 + (*p++ - '0');
	*at = p;
	return n;
}

long gray(unsigned char *picture, unsigned long size)
{
	const unsigned char *p = picture, *end = picture + size;
	if (size < 2 || p[0] != 'P' || p[1] != '6')
		return -1;
	p += 2;
	long width = number(&p, end), height = number(&p, end), depth = number(&p, end);
	if (width <= 0 || height <= 0 || depth != 255 || p == end)
		return -2;
	p++;
	if (width * height > (end - p) / 3)
		return -3;
	unsigned char *rgb = picture + (p - picture);
	for (long i = 0; i < width * height; i++, rgb += 3) {
		/* Rec. 601 luma in 16.16 fixed point. */
		unsigned y = (19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16;
		rgb[0] = rgb[1] = rgb[2] = (unsigned char)y;
	}
	return width * height;
}
