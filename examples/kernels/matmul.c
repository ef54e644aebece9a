/* A product of two matrices of doubles: loads, multiplications and additions in nested loops. */

enum { N = 192, ROUNDS = 2 };

static double a[N][N], b[N][N], c[N][N];

unsigned long matmul(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (i * 7 + j * 3) % 17 - 8;
            b[i][j] = (i * 5 + j * 11) % 13 - 6;
            c[i][j] = 0;
        }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < N; i++)
            for (int k = 0; k < N; k++) {
                double scale = a[i][k];
                for (int j = 0; j < N; j++)
                    c[i][j] += scale * b[k][j];
            }
    unsigned long sum = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            sum = sum * 33 + (unsigned long)(long)c[i][j];
    return sum;
}
