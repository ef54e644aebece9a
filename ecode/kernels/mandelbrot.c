/* The Mandelbrot set: how many steps each point takes to escape. */
static int steps(double cr, double ci, int most)
{
	double r = 0, i = 0;
	int n;

	for (n = 0; n < most; n++) {
		double r2 = r * r, i2 = i * i;

		if (r2 + i2 > 4.0)
			break;
		i = 2 * r * i + ci;
		r = r2 - i2 + cr;
	}
	return n;
}

long kernel(long rounds)
{
	long round, sum = 0;
	int x, y;

	for (round = 0; round < rounds; round++)
		for (y = 0; y < 64; y++)
			for (x = 0; x < 64; x++)
				sum += steps(-2.0 + x * (3.0 / 64), -1.5 + y * (3.0 / 64), 200 + (int)(round & 1));
	return sum;
}
