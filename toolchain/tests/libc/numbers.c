#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}
static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

int main(void)
{
    const char *texts[] = { "0", "-0", "12", "  42abc", "+7", "0x1F", "0777", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
                            "18446744073709551616", "zz", "", "-", "0x", "1e5", "99999999999999999999", "-1", "7fffffff", "0b101" };
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int base = 0; base <= 36; base += base ? 7 : 2) {
            char *end;
            errno = 0;
            long l = strtol(texts[i], &end, base);
            int e1 = errno;
            long at = end - texts[i];
            errno = 0;
            unsigned long long u = strtoull(texts[i], &end, base);
            printf("%ld %d %ld %llu %d %ld\n", l, e1, at, u, errno, (long)(end - texts[i]));
        }
    const char *floats[] = { "0", "1", "-1.5", "3.14159", "1e308", "1e309", "-1e309", "1e-310", "5e-324", "1e-400", "inf", "-infinity", "nan", "nan(12)",
                             "0x1p3", "0x1.8p-1", "1e", "1e+", ".5", ".", "5.", "123456789012345678901234567890", "0.1", "0.3", "2.2250738585072011e-308",
                             "9007199254740993", "1.7976931348623159e308", "179769313486231580793e289", "4.9406564584124654e-324", "  12e2xyz" };
    for (unsigned i = 0; i < sizeof floats / sizeof *floats; i++) {
        char *end;
        errno = 0;
        double d = strtod(floats[i], &end);
        uint64_t bits;
        memcpy(&bits, &d, 8);
        if (isnan(d))
            bits = 0;
        printf("%s: %.17g %016llx %ld\n", floats[i], isnan(d) ? 0 : d, (unsigned long long)bits, (long)(end - floats[i]));
        float f = strtof(floats[i], &end);
        printf("   %.9g %ld\n", isnan(f) ? 0 : f, (long)(end - floats[i]));
        long double ld = strtold(floats[i], &end);
        if (!isnan(ld))
            printf("   %.21Lg %ld\n", ld, (long)(end - floats[i]));
    }
    /* Round trips. */
    uint64_t state = 88172645463325252u;
    int bad = 0;
    for (int i = 0; i < 20000; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        double d, back;
        memcpy(&d, &state, 8);
        if (isnan(d) || isinf(d))
            continue;
        char text[40];
        sprintf(text, "%.17g", d);
        back = strtod(text, 0);
        bad += memcmp(&back, &d, 8) != 0;
        if (i % 500 == 0)
            printf("%s %.6e %g %a\n", text, d, d, i ? 1.0 : 0.0);
    }
    printf("bad %d\n", bad);
    int numbers[500];
    for (int i = 0; i < 500; i++)
        numbers[i] = (int)((unsigned)i * 2654435761u >> 8) % 1000;
    qsort(numbers, 500, sizeof *numbers, compare);
    for (int i = 1; i < 500; i++)
        if (numbers[i - 1] > numbers[i])
            puts("not sorted");
    int key = numbers[123], *found = bsearch(&key, numbers, 500, sizeof *numbers, compare);
    printf("%d %d\n", found && *found == key, bsearch(&(int){ -1 }, numbers, 500, sizeof *numbers, compare) == 0);
    char *names[] = { "delta", "alpha", "charlie", "bravo", "echo" };
    qsort(names, 5, sizeof *names, by_text);
    for (int i = 0; i < 5; i++)
        printf("%s ", names[i]);
    putchar('\n');
    div_t q = div(-17, 5);
    lldiv_t lq = lldiv(-17000000000LL, 7);
    printf("%d %d %lld %lld %d %ld %lld %jd\n", q.quot, q.rem, lq.quot, lq.rem, abs(-3), labs(-4L), llabs(-5LL), imaxabs(-6));
    printf("%d %ld %f %lld\n", atoi(" 12x"), atol("-34"), atof("5.5e1"), atoll("99999999999"));
    printf("%jd %ju\n", strtoimax("-77", 0, 10), strtoumax("77", 0, 8));
    return 0;
}
