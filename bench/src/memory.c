/* Times of memory and string functions: `count` calls of one of them with `n` bytes, at an address
 * `shift` bytes off a page. */
#include <stddef.h>
#include <string.h>

enum { MOST = 1 << 20 };

static char from[MOST + 8192] __attribute__((aligned(4096))), to[MOST + 8192] __attribute__((aligned(4096)));

/* Where the host may write a mebibyte. */
char *place(void)
{
    return to;
}

unsigned long calls(unsigned what, unsigned n, unsigned shift, unsigned count)
{
    /* Not a multiple of a page apart, so that loads do not wait for stores whose addresses look
     * alike. */
    char *d = to + 1024 + shift, *s = from + 2 * shift;
    unsigned long sum = 0;
    if (what == 6)
        d = from + 3 * shift + 64; /* overlaps: backwards, from 65 bytes on */
    else if (what == 7)
        d = to + 16, s = from; /* further into its page by less than a line */
    else if (what >= 2) {
        memset(s, 'a', n);
        memset(d, 'a', n);
        s[n] = d[n] = 0;
    }
    for (unsigned k = 0; k < count; k++) {
        switch (what) {
        case 0:
        case 7: memcpy(d, s, n); break;
        case 1: memset(d, (int)k, n); break;
        case 2: sum += (unsigned)memcmp(d, s, n); break;
        case 3: sum += strlen(s); break;
        case 4: sum += memchr(s, 'b', n) != NULL; break;
        case 6: memmove(d, s, n); break;
        default: sum += (unsigned)strcmp(d, s); break;
        }
        __asm__ volatile("" ::: "memory");
    }
    return sum + (unsigned char)d[n / 2];
}
