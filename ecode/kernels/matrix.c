/* Product of two matrices of doubles. */
enum { N = 96 };

static double a[N][N], b[N][N], c[N][N];

static void multiply(void)
{
	int i, j, k;

	for (i = 0; i < N; i++)
		for (j = 0; j < N; j++) {
			double sum = 0;

			for (k = 0; k < N; k++)
				sum += a[i][k] * b[k][j];
			c[i][j] = sum;
		}
}

long kernel(long rounds)
{
	long round;
	double sum = 0;
	int i, j;

	for (i = 0; i < N; i++)
		for (j = 0; j < N; j++) {
			a[i][j] = (i + 1) * 0.5 + j;
			b[i][j] = (i ^ j) * 0.25;
		}
	for (round = 0; round < rounds; round++) {
		multiply();
		sum += c[round % N][(round * 7) % N];
		a[round % N][3] += 1;
	}
	return (long)sum;
}
