/* The library from several threads of the host at once: the heap, formatted text, numbers, errno. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same for the same seed, whoever else is inside. */
unsigned long work(unsigned seed)
{
    unsigned long sum = seed;
    char *kept[16] = { 0 };
    for (unsigned i = 0; i < 3000; i++) {
        unsigned at = (seed = seed * 1103515245u + 12345u) >> 16 & 15;
        free(kept[at]);
        kept[at] = malloc(32 + (seed >> 8 & 1023));
        snprintf(kept[at], 32, "%u:%.3f", seed, seed / 7.0);
        errno = (int)(seed & 127);
        double number = strtod(strchr(kept[at], ':') + 1, NULL);
        if (errno != (int)(seed & 127) || number < seed / 7.0 - 1 || number > seed / 7.0 + 1)
            return 0;
        strtol("99999999999999999999", NULL, 10);
        if (errno != ERANGE)
            return 0;
        for (const char *c = kept[at]; *c; c++)
            sum = sum * 31 + (unsigned char)*c;
    }
    for (int i = 0; i < 16; i++)
        free(kept[i]);
    return sum ? sum : 1;
}
