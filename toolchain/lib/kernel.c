/* What images for the kernel have of a C library: the functions that compilers call on their own,
 * and strlen. Vectors are the interrupted program's, so words of eight bytes do the work. */
#include <stddef.h>
#include <stdint.h>

#define PX __attribute__((weak, visibility("hidden")))

typedef uint64_t u64 __attribute__((aligned(1), may_alias));

PX void *memmove(void *to, const void *from, size_t n)
{
    char *d = to;
    const char *s = from;
    /* Only the low 32 bits of a pointer count, and of a distance. */
    if ((uint32_t)(uintptr_t)d - (uint32_t)(uintptr_t)s >= n) {
        size_t k = 0;
        for (; k + 8 <= n; k += 8)
            *(u64 *)(d + k) = *(const u64 *)(s + k);
        for (; k < n; k++)
            d[k] = s[k];
    } else {
        for (; n >= 8; n -= 8)
            *(u64 *)(d + n - 8) = *(const u64 *)(s + n - 8);
        while (n--)
            d[n] = s[n];
    }
    return to;
}

PX void *memcpy(void *restrict to, const void *restrict from, size_t n) { return memmove(to, from, n); }

PX void *memset(void *to, int value, size_t n)
{
    char *d = to;
    uint64_t filling = (uint8_t)value * 0x0101010101010101u;
    size_t k = 0;
    for (; k + 8 <= n; k += 8)
        *(u64 *)(d + k) = filling;
    for (; k < n; k++)
        d[k] = (char)value;
    return to;
}

PX int memcmp(const void *a, const void *b, size_t n)
{
    const uint8_t *x = a, *y = b;
    size_t k = 0;
    while (k + 8 <= n && *(const u64 *)(x + k) == *(const u64 *)(y + k))
        k += 8;
    for (; k < n; k++)
        if (x[k] != y[k])
            return x[k] - y[k];
    return 0;
}

PX int bcmp(const void *a, const void *b, size_t n) { return memcmp(a, b, n); }

PX size_t strlen(const char *s)
{
    size_t n = 0;
    while (s[n])
        n++;
    return n;
}
