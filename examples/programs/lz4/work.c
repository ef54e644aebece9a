#include "corpus.h"
#include <string.h>
#include <lz4.h>
#include <lz4hc.h>
static char packed[CORPUS + CORPUS / 8 + 1024], back[CORPUS];
unsigned long long work(void)
{
    char *all = corpus();
    unsigned long long sum = 0;
    for (int k = 0; k < 9; k++) {
        int n = k < 8 ? LZ4_compress_default(all, packed, CORPUS, sizeof packed) : LZ4_compress_HC(all, packed, CORPUS, sizeof packed, 6);
        for (int j = 0; j < 4; j++)
            if (LZ4_decompress_safe(packed, back, n, sizeof back) != CORPUS || memcmp(back, all, CORPUS))
                return 2;
        sum = checksum(sum, packed, (size_t)n);
    }
    return sum;
}
