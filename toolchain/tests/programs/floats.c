/* float, double, vectors that the compiler makes, conversions, comparisons, square roots. */
#include "mix.h"

NOINLINE static double polynomial(double x, const double *c, int n)
{
    double y = 0;
    for (int i = 0; i < n; i++)
        y = y * x + c[i];
    return y;
}
NOINLINE static void saxpy(float *restrict y, const float *restrict x, float a, int n)
{
    for (int i = 0; i < n; i++)
        y[i] = a * x[i] + y[i];
}
NOINLINE static void convolve(double *restrict out, const double *restrict in, int n)
{
    for (int i = 1; i < n - 1; i++)
        out[i] = (in[i - 1] + 2 * in[i] + in[i + 1]) / 4;
}
NOINLINE static long integers(int *restrict a, const short *restrict b, const unsigned char *restrict c, int n)
{
    long sum = 0;
    for (int i = 0; i < n; i++) {
        a[i] = b[i] * c[i] + (a[i] >> 2);
        sum += a[i] > 100 ? a[i] : -b[i];
    }
    return sum;
}
NOINLINE static int conditions(double a, double b) { return (a < b) + 2 * (a == b) + 4 * (a != a) + 8 * __builtin_isgreater(a, b); }
NOINLINE static unsigned long conversions(double d, float f, long l, unsigned u)
{
    return (unsigned long)d + (long)f + (unsigned)(double)l + (unsigned long)(float)u + (int)d;
}
NOINLINE static double indirect(double (*f)(double, const double *, int), double x)
{
    const double c[] = { 1.5, -2.25, 0.5, 3 };
    return f(x, c, 4) + __builtin_sqrt(x * x + 1) + __builtin_fabs(x) - __builtin_copysign(2, x);
}
NOINLINE static void gather(double *restrict out, const double *restrict in, const int *restrict index, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = in[index[i]];
}

unsigned long run(unsigned long seed)
{
    unsigned long s = seed;
    float x[100], y[100];
    double in[64], out[64] = { 0 };
    int a[77], index[64];
    short b[77];
    unsigned char c[77];
    for (int i = 0; i < 100; i++) {
        x[i] = (float)(i * 3 % 17) / 4;
        y[i] = (float)(i - 50);
    }
    for (int i = 0; i < 64; i++) {
        in[i] = i * 0.25 - 3;
        index[i] = (i * 37) & 63;
    }
    for (int i = 0; i < 77; i++) {
        a[i] = i * 1001;
        b[i] = (short)(i * 77 - 3000);
        c[i] = (unsigned char)(i * 5);
    }
    saxpy(y, x, 1.5f, 100);
    convolve(out, in, 64);
    s = mix(s, integers(a, b, c, 77));
    for (int i = 0; i < 100; i++)
        s = mix_double(s, y[i]);
    gather(in, out, index, 64);
    for (int i = 0; i < 64; i++)
        s = mix_double(mix_double(s, out[i]), in[i]);
    s = mix_double(s, indirect(polynomial, 1.75));
    s = mix(s, conditions(1, 2) + 16 * conditions(__builtin_nan(""), 1) + 256 * conditions(2, 2));
    return mix(s, conversions(12345.75, -7.5f, -3, 4000000000u));
}
