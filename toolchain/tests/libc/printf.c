#include <stdio.h>
#include <stdint.h>
#include <inttypes.h>
#include <string.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>

int main(void)
{
    const char *flags[] = { "", "-", "+", " ", "0", "#", "+0", "-#", "-+", "# ", "#0", "'" };
    const char *widths[] = { "", "1", "8", "20", ".0", ".1", ".5", "12.3", "3.12" };
    char format[64];
    long long integers[] = { 0, 1, -1, 42, -42, INT_MAX, INT_MIN, UINT_MAX, LLONG_MAX, LLONG_MIN, 123456789012345LL };
    for (unsigned f = 0; f < 11; f++)
        for (unsigned w = 0; w < 9; w++) {
            for (const char *c = "dioxXu"; *c; c++) {
                for (unsigned i = 0; i < 11; i++) {
                    sprintf(format, "[%%%s%s%c|%%%s%sll%c|%%%s%sh%c|%%%s%shh%c]", flags[f], widths[w], *c, flags[f], widths[w], *c, flags[f],
                            widths[w], *c, flags[f], widths[w], *c);
                    printf(format, (int)integers[i], integers[i], (int)integers[i], (int)integers[i]);
                }
                putchar('\n');
            }
        }
    double doubles[] = { 0.0, -0.0, 1.0, -1.5, 3.14159265358979, 1e10, 1e-10, 123456.789, 1e100, 1.7976931348623157e308, 5e-324, 2.5, 0.5, 1.0 / 3,
                         99999.4, 0.0001, 0.00001, INFINITY, -INFINITY, NAN, 1e21, 1e22, 123456789012345678.0 };
    for (unsigned f = 0; f < 11; f++)
        for (unsigned w = 0; w < 9; w++)
            for (const char *c = "fFeEgG"; *c; c++) {
                sprintf(format, "[%%%s%s%c]", flags[f], widths[w], *c);
                for (unsigned i = 0; i < sizeof doubles / sizeof *doubles; i++)
                    printf(format, doubles[i]);
                sprintf(format, "[%%%s%sL%c]\n", flags[f], widths[w], *c);
                printf(format, (long double)1.0L / 3);
                printf(format, (long double)LDBL_MAX);
                printf(format, 1e4000L);
            }
    printf("%s|%10s|%-10s|%.2s|%10.3s|%c|%5c|%-5c|%%\n", "text", "text", "text", "text", "text", 'x', 'y', 'z');
    printf("%*d|%-*d|%.*f|%*.*f\n", 6, 42, 6, 42, 3, 1.23456, 10, 2, 9.87654);
    printf("%2$s %1$s %3$*4$d\n", "one", "two", 5, 4);
    printf("%jd %zu %td %ju %hhd %hu\n", (intmax_t)-5, (size_t)7, (ptrdiff_t)-9, (uintmax_t)11, 300, 70000);
    printf("%" PRId64 " %" PRIu32 " %" PRIx64 " %" PRIdMAX "\n", (int64_t)-1, (uint32_t)-1, (uint64_t)-1, (intmax_t)1);
    int n = -1;
    long long ln = -1;
    printf("count%n and more%lln\n", &n, &ln);
    printf("%d %lld\n", n, ln);
    char small[8];
    int wanted = snprintf(small, sizeof small, "%s", "longer than that");
    printf("%d [%s]\n", wanted, small);
    printf("%p %p\n", (void *)0x1234, (void *)0xabcdef);
    printf("%ls|%lc|%.3ls\n", L"wide", L'w', L"wider");
    printf("%.50f\n%.30e\n%.0f %.0f %.0f %.0f\n", 0.1, 1.0 / 3, 0.5, 1.5, 2.5, 3.5);
    printf("%.17g %.17g %.16g %.15g\n", 0.1, 1e23, 0.1, 0.1);
    return 0;
}
