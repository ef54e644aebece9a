#include "corpus.h"
#include <string.h>
#include <zlib.h>
static unsigned char packed[CORPUS + CORPUS / 8 + 1024], back[CORPUS];
unsigned long long work(void)
{
    char *all = corpus();
    unsigned long long sum = 0;
    for (int level = 1; level <= 6; level += 5) {
        uLongf n = sizeof packed, m = sizeof back;
        if (compress2(packed, &n, (unsigned char *)all, CORPUS, level) != Z_OK)
            return 1;
        for (int k = 0; k < 3; k++) {
            m = sizeof back;
            if (uncompress(back, &m, packed, n) != Z_OK || m != CORPUS || memcmp(back, all, CORPUS))
                return 2;
        }
        sum = checksum(sum, packed, n) ^ crc32(0, back, CORPUS);
    }
    return sum;
}
