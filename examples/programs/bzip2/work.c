#include "corpus.h"
#include <string.h>
#include <bzlib.h>
static char packed[CORPUS + CORPUS / 8 + 1024], back[CORPUS];
void bz_internal_error(int code) { (void)code; __builtin_trap(); }
unsigned long long work(void)
{
    char *all = corpus();
    unsigned n = sizeof packed, m = sizeof back;
    if (BZ2_bzBuffToBuffCompress(packed, &n, all, CORPUS, 9, 0, 0) != BZ_OK)
        return 1;
    if (BZ2_bzBuffToBuffDecompress(back, &m, packed, n, 0, 0) != BZ_OK || m != CORPUS || memcmp(back, all, CORPUS))
        return 2;
    return checksum(0, packed, n);
}
