/* What libstdc++ should know of the system before anything else: the C library declares no
 * functions for `long double` that <cmath> would find. */
#ifndef POSTERN_OS_DEFINES_H
#define POSTERN_OS_DEFINES_H 1

#ifdef __cplusplus
extern "C" {
#define POSTERN_1(name) long double name(long double);
#define POSTERN_2(name) long double name(long double, long double);
POSTERN_1(acosl) POSTERN_1(asinl) POSTERN_1(atanl) POSTERN_1(ceill) POSTERN_1(cosl) POSTERN_1(coshl) POSTERN_1(expl)
POSTERN_1(fabsl) POSTERN_1(floorl) POSTERN_1(logl) POSTERN_1(log10l) POSTERN_1(sinl) POSTERN_1(sinhl) POSTERN_1(tanl)
POSTERN_1(tanhl) POSTERN_1(acoshl) POSTERN_1(asinhl) POSTERN_1(atanhl) POSTERN_1(cbrtl) POSTERN_1(erfl) POSTERN_1(erfcl)
POSTERN_1(exp2l) POSTERN_1(expm1l) POSTERN_1(lgammal) POSTERN_1(log1pl) POSTERN_1(log2l) POSTERN_1(logbl)
POSTERN_1(nearbyintl) POSTERN_1(rintl) POSTERN_1(roundl) POSTERN_1(tgammal) POSTERN_1(truncl)
POSTERN_2(atan2l) POSTERN_2(fmodl) POSTERN_2(powl) POSTERN_2(copysignl) POSTERN_2(fdiml) POSTERN_2(fmaxl) POSTERN_2(fminl)
POSTERN_2(nextafterl) POSTERN_2(nexttowardl) POSTERN_2(remainderl)
long double frexpl(long double, int *);
long double ldexpl(long double, int);
long double modfl(long double, long double *);
long double fmal(long double, long double, long double);
long double remquol(long double, long double, int *);
long double scalbnl(long double, int);
long double scalblnl(long double, long);
long double nanl(const char *);
float nexttowardf(float, long double);
double nexttoward(double, long double);
int ilogbl(long double);
long lrintl(long double);
long lroundl(long double);
long long llrintl(long double);
long long llroundl(long double);
#undef POSTERN_1
#undef POSTERN_2
}
#endif

#endif
