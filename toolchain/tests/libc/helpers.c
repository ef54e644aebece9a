/* What compilers call: 128-bit integers, complex products and quotients, binary128. Everything is exact, so that the output is the same to the bit. */
#include <complex.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef __int128 i128;
typedef unsigned __int128 u128;
static uint64_t state = 88172645463325252u;
static uint64_t next(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state * 2685821657736338717u;
}
static uint64_t sum;
static void mix(const void *p, size_t n)
{
    const unsigned char *b = p;
    while (n--)
        sum = (sum ^ *b++) * 1099511628211u;
}
static volatile int one = 1;

static double some_double(void)
{
    static const double special[] = { 0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 1e-308, 4.9e-324, __builtin_inf(), -__builtin_inf(), 2.0, 0.1 };
    uint64_t bits = next();
    double d;
    if (bits % 5 == 0)
        return special[bits / 5 % 12];
    if (bits % 5 < 3)
        bits = (bits & 0x800fffffffffffff) | (1023 - 8 + next() % 16) << 52;
    memcpy(&d, &bits, 8);
    return d == d ? d : 3.0;
}
static void mix_double(double d)
{
    if (d != d)
        d = __builtin_nan("");
    d = d != d ? 12345 : d;
    mix(&d, 8);
}
static __float128 some_quad(void)
{
    union { u128 bits; __float128 value; } u;
    uint64_t pick = next();
    if (pick % 7 == 0)
        return some_double();
    u.bits = (u128)next() << 64 | next();
    if (pick % 7 < 4)
        u.bits = (u.bits & ~((u128)0x7fff << 112)) | (u128)(16383 - 60 + next() % 120) << 112;
    return u.value == u.value ? u.value : 1;
}
static void mix_quad(__float128 q)
{
    if (q != q)
        q = 12345;
    mix(&q, 16);
}

int main(void)
{
    for (int i = 0; i < 3000; i++) {
        u128 a = (u128)next() << 64 | next(), b = (u128)next() << 64 | next();
        a >>= next() % 128, b >>= next() % 127;
        if (!b)
            b = 1;
        i128 sa = (i128)a, sb = (i128)b;
        u128 results[] = { a / b, a % b, (u128)(sa / sb), (u128)(sa % sb), a * b, (u128)(sa >> 3), a << (next() % 128) };
        mix(results, sizeof results);
        double d = (double)a, sd = (double)sa;
        float f = (float)a, sf = (float)sa;
        long double x = (long double)a, sx = (long double)sa;
        mix(&d, 8), mix(&sd, 8), mix(&f, 4), mix(&sf, 4), mix(&x, 10), mix(&sx, 10);
        u128 back[] = { (u128)d >> 1, (u128)(i128)(sd / 2), (u128)x >> 1, (u128)(i128)(sx / 2), (u128)(f / 4), (u128)(i128)(sf / 4) };
        if (d < 1e38 && sd > -1e38)
            mix(back, sizeof back);
        int bits[] = { __builtin_popcountll(next()), __builtin_parityll(next()), __builtin_clrsbll((long long)next()) };
        mix(bits, 12);
    }
    printf("integers %016llx\n", (unsigned long long)sum);
    for (int i = 0; i < 20000; i++) {
        double complex a = CMPLX(some_double(), some_double()), b = CMPLX(some_double(), some_double());
        double complex p = a * b, q = a / b;
        mix_double(creal(p)), mix_double(cimag(p));
        if (i == 5000)
            printf("complex products %016llx\n", (unsigned long long)sum);
        mix_double(creal(q)), mix_double(cimag(q));
        float complex fa = CMPLXF((float)some_double(), (float)some_double()), fb = CMPLXF((float)some_double(), (float)some_double());
        float complex fp = fa * fb, fq = fa / fb;
        mix_double(crealf(fp)), mix_double(cimagf(fp)), mix_double(crealf(fq)), mix_double(cimagf(fq));
        long double complex la = CMPLXL(some_double(), some_double()), lb = CMPLXL(some_double(), some_double());
        long double complex lp = la * lb, lq = la / lb;
        mix_double((double)creall(lp)), mix_double((double)cimagl(lp)), mix_double((double)creall(lq)), mix_double((double)cimagl(lq));
    }
    printf("complex %016llx\n", (unsigned long long)sum);
    for (int i = 0; i < 20000; i++) {
        __float128 a = some_quad(), b = some_quad();
        mix_quad(a + b), mix_quad(a - b), mix_quad(a * b), mix_quad(a / b);
        int order[] = { a < b, a <= b, a == b, a != b, a > b, a >= b, a < a * 0 / 0 * one };
        mix(order, sizeof order);
        mix_double((double)a), mix_double((float)b), mix_double((double)((double)a + 0));
        long double x = (long double)a;
        if (x == x)
            mix(&x, 10);
        mix_quad((__float128)x), mix_quad((__float128)some_double()), mix_quad((float)some_double());
        __float128 small = a;
        while (small - small == 0 && (small > 1e9 || small < -1e9))
            small /= 1e30Q;
        long l = (long)(small * 1000);
        unsigned long ul = small > 0 ? (unsigned long)(small * 77) : 0;
        int n = (int)small;
        i128 wide = (i128)(small * 1e20Q);
        mix(&l, 8), mix(&ul, 8), mix(&n, 4), mix(&wide, 16);
        mix_quad((__float128)(long)next()), mix_quad((__float128)next()), mix_quad((__float128)(int)next());
        mix_quad((__float128)((i128)next() * (i128)next())), mix_quad((__float128)((u128)next() << 64 | next()));
    }
    printf("binary128 %016llx\n", (unsigned long long)sum);
    return 0;
}
