
/* Functions of long double, which newlib declares only where that is a double. */
#ifndef _POSTERN_LONG_DOUBLE
#define _POSTERN_LONG_DOUBLE
#ifdef __cplusplus
extern "C" {
#endif
#define __POSTERN_ONE(name) extern long double name(long double);
#define __POSTERN_TWO(name) extern long double name(long double, long double);
__POSTERN_ONE(acosl) __POSTERN_ONE(acoshl) __POSTERN_ONE(asinl) __POSTERN_ONE(asinhl) __POSTERN_ONE(atanl) __POSTERN_ONE(atanhl)
__POSTERN_ONE(cbrtl) __POSTERN_ONE(ceill) __POSTERN_ONE(cosl) __POSTERN_ONE(coshl) __POSTERN_ONE(erfl) __POSTERN_ONE(erfcl)
__POSTERN_ONE(expl) __POSTERN_ONE(exp2l) __POSTERN_ONE(expm1l) __POSTERN_ONE(fabsl) __POSTERN_ONE(floorl) __POSTERN_ONE(lgammal)
__POSTERN_ONE(logl) __POSTERN_ONE(log10l) __POSTERN_ONE(log1pl) __POSTERN_ONE(log2l) __POSTERN_ONE(logbl) __POSTERN_ONE(nearbyintl)
__POSTERN_ONE(rintl) __POSTERN_ONE(roundl) __POSTERN_ONE(sinl) __POSTERN_ONE(sinhl) __POSTERN_ONE(sqrtl) __POSTERN_ONE(tanl)
__POSTERN_ONE(tanhl) __POSTERN_ONE(tgammal) __POSTERN_ONE(truncl)
__POSTERN_TWO(atan2l) __POSTERN_TWO(copysignl) __POSTERN_TWO(fdiml) __POSTERN_TWO(fmaxl) __POSTERN_TWO(fminl) __POSTERN_TWO(fmodl)
__POSTERN_TWO(hypotl) __POSTERN_TWO(nextafterl) __POSTERN_TWO(nexttowardl) __POSTERN_TWO(powl) __POSTERN_TWO(remainderl)
extern long double fmal(long double, long double, long double);
extern long double frexpl(long double, int *);
extern long double ldexpl(long double, int);
extern long double modfl(long double, long double *);
extern long double nanl(const char *);
extern long double scalbnl(long double, int);
extern long double scalblnl(long double, long);
extern double nexttoward(double, long double);
extern float nexttowardf(float, long double);
extern int ilogbl(long double);
extern long lrintl(long double);
extern long lroundl(long double);
extern long long llrintl(long double);
extern long long llroundl(long double);
#undef __POSTERN_ONE
#undef __POSTERN_TWO
#ifdef __cplusplus
}
#endif
#endif
