/* A 5 x 5 convolution of a gray image, with integer weights. */
enum { WIDTH = 256, HEIGHT = 256 };

static unsigned char source[HEIGHT][WIDTH];
static unsigned char result[HEIGHT][WIDTH];

static const int weights[5][5] = {
	{ 1, 4, 6, 4, 1 },
	{ 4, 16, 24, 16, 4 },
	{ 6, 24, 36, 24, 6 },
	{ 4, 16, 24, 16, 4 },
	{ 1, 4, 6, 4, 1 },
};

static void convolve(void)
{
	int x, y, dx, dy;

	for (y = 2; y < HEIGHT - 2; y++)
		for (x = 2; x < WIDTH - 2; x++) {
			int sum = 0;

			for (dy = 0; dy < 5; dy++)
				for (dx = 0; dx < 5; dx++)
					sum += weights[dy][dx] * source[y + dy - 2][x + dx - 2];
			result[y][x] = sum >> 8;
		}
}

long kernel(long rounds)
{
	long sum = 0, round;
	int x, y;

	for (y = 0; y < HEIGHT; y++)
		for (x = 0; x < WIDTH; x++)
			source[y][x] = x * y + (x ^ y);
	for (round = 0; round < rounds; round++) {
		convolve();
		for (y = 0; y < HEIGHT; y += 7)
			sum += result[y][(y * 3) & 255];
		source[round & 255][7]++;
	}
	return sum;
}
