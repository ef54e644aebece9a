/*
 * A colour image becomes a gray one: the example of the Kernel Plugins paper,
 * section 6.3. The image is a portable pixmap (P6) in memory: a header of
 * magic, width, height and largest value, then three bytes for each pixel.
 * The result is a portable graymap (P5).
 */
enum { WIDTH = 320, HEIGHT = 200 };

static unsigned char image[16 + WIDTH * HEIGHT * 3];
static unsigned char gray[16 + WIDTH * HEIGHT];

/* Reads a number of the header, behind any blanks. */
static int number(const unsigned char *data, int length, int *position)
{
	int at = *position, value = 0;

	while (at < length && (data[at] == ' ' || data[at] == '\n'))
		at++;
	while (at < length && data[at] >= '0' && data[at] <= '9') {
		value = value * 10 + (data[at] - '0');
		at++;
	}
	*position = at;
	return value;
}

/* Returns the size of the result, or a negative number if this is no image. */
int to_gray(const unsigned char *in, int length, unsigned char *out)
{
	int at = 2, width, height, most, i, header;

	if (length < 2 || in[0] != 'P' || in[1] != '6')
		return -1;
	width = number(in, length, &at);
	height = number(in, length, &at);
	most = number(in, length, &at);
	if (most != 255 || width <= 0 || height <= 0)
		return -2;
	at++;
	if (length - at < width * height * 3)
		return -3;
	header = at;
	for (i = 0; i < header; i++)
		out[i] = in[i];
	out[1] = '5';
	in += header;
	out += header;
	for (i = 0; i < width * height; i++) {
		int red = in[0], green = in[1], blue = in[2];

		/* The weights of the luminance, in 256ths. */
		out[i] = (77 * red + 150 * green + 29 * blue) >> 8;
		in += 3;
	}
	return header + width * height;
}

long kernel(long rounds)
{
	const char *header = "P6\n320 200\n255\n";
	long sum = 0, round;
	int i, size;

	for (i = 0; header[i]; i++)
		image[i] = header[i];
	size = i;
	for (i = 0; i < WIDTH * HEIGHT * 3; i++)
		image[size + i] = i * 7 + (i >> 5);
	for (round = 0; round < rounds; round++) {
		int length = to_gray(image, sizeof image, gray);

		for (i = 0; i < length; i += 97)
			sum += gray[i];
		image[size + round % 1000] ^= 1;
	}
	return sum;
}
