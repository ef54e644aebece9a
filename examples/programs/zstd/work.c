#include "corpus.h"
#include <string.h>
#include <zstd.h>
static char packed[CORPUS + CORPUS / 8 + 1024], back[CORPUS];
unsigned long long work(void)
{
    char *all = corpus();
    unsigned long long sum = 0;
    static const int levels[] = {1, 3, 7};
    for (int k = 0; k < 3; k++) {
        size_t n = ZSTD_compress(packed, sizeof packed, all, CORPUS, levels[k]);
        if (ZSTD_isError(n))
            return 1;
        for (int j = 0; j < 5; j++)
            if (ZSTD_decompress(back, sizeof back, packed, n) != CORPUS || memcmp(back, all, CORPUS))
                return 2;
        sum = checksum(sum, packed, n);
    }
    return sum;
}
