/* Instructions for ciphers and hashes, each against plain C or the example of its standard. */
#include <immintrin.h>

typedef unsigned long long u64;
typedef unsigned u32;

static int same(const void *a, const void *b, int bytes) {
    const unsigned char *x = a, *y = b;
    while (bytes-- > 0)
        if (x[bytes] != y[bytes]) return 0;
    return 1;
}

#ifdef __AES__
/* The example of FIPS 197, appendix B. */
static const unsigned char key[16] = {0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c};
static const unsigned char plain[16] = {0x32, 0x43, 0xf6, 0xa8, 0x88, 0x5a, 0x30, 0x8d, 0x31, 0x31, 0x98, 0xa2, 0xe0, 0x37, 0x07, 0x34};
static const unsigned char cipher[16] = {0x39, 0x25, 0x84, 0x1d, 0x02, 0xdc, 0x09, 0xfb, 0xdc, 0x11, 0x85, 0x97, 0x19, 0x6a, 0x0b, 0x32};

static void schedule(__m128i *keys) {
    __m128i k = _mm_loadu_si128((const __m128i *)key);
    keys[0] = k;
#define STEP(n, c) \
    { \
        __m128i word = _mm_shuffle_epi32(_mm_aeskeygenassist_si128(k, c), 0xff), shifted = k; \
        for (int i = 0; i < 3; i++) shifted = _mm_slli_si128(shifted, 4), k = _mm_xor_si128(k, shifted); \
        keys[n] = k = _mm_xor_si128(k, word); \
    }
    STEP(1, 1) STEP(2, 2) STEP(3, 4) STEP(4, 8) STEP(5, 16) STEP(6, 32) STEP(7, 64) STEP(8, 128) STEP(9, 0x1b) STEP(10, 0x36)
}

int aes(void) {
    __m128i keys[11], x = _mm_loadu_si128((const __m128i *)plain), y;
    schedule(keys);
    x = _mm_xor_si128(x, keys[0]);
    for (int k = 1; k < 10; k++) x = _mm_aesenc_si128(x, keys[k]);
    x = _mm_aesenclast_si128(x, keys[10]);
    y = _mm_xor_si128(x, keys[10]);
    for (int k = 9; k > 0; k--) y = _mm_aesdec_si128(y, _mm_aesimc_si128(keys[k]));
    y = _mm_aesdeclast_si128(y, keys[0]);
    return same(&x, cipher, 16) && same(&y, plain, 16);
}
#endif

#ifdef __VAES__
int vaes(void) {
    __m128i keys[11], a = _mm_loadu_si128((const __m128i *)plain), b = _mm_loadu_si128((const __m128i *)cipher);
    schedule(keys);
    __m256i both = _mm256_set_m128i(b, a), k = _mm256_set_m128i(keys[1], keys[2]);
    __m256i enc = _mm256_aesenclast_epi128(_mm256_aesenc_epi128(both, k), k);
    __m256i dec = _mm256_aesdeclast_epi128(_mm256_aesdec_epi128(both, k), k);
    __m128i e[2] = {_mm_aesenclast_si128(_mm_aesenc_si128(a, keys[2]), keys[2]), _mm_aesenclast_si128(_mm_aesenc_si128(b, keys[1]), keys[1])};
    __m128i d[2] = {_mm_aesdeclast_si128(_mm_aesdec_si128(a, keys[2]), keys[2]), _mm_aesdeclast_si128(_mm_aesdec_si128(b, keys[1]), keys[1])};
    return same(&enc, e, 32) && same(&dec, d, 32);
}
#endif

#ifdef __PCLMUL__
static void product(u64 a, u64 b, u64 *out) {
    out[0] = out[1] = 0;
    for (int k = 0; k < 64; k++)
        if (b >> k & 1) out[0] ^= a << k, out[1] ^= k ? a >> (64 - k) : 0;
}

static const u64 factors[4] = {0x123456789abcdef1, 0xfedcba9876543210, 0x8000000000000001, 0x0f1e2d3c4b5a6978};

int pclmul(void) {
    __m128i a = _mm_loadu_si128((const __m128i *)factors), b = _mm_loadu_si128((const __m128i *)(factors + 2)), r[2];
    u64 wanted[4];
    product(factors[0], factors[2], wanted);
    product(factors[1], factors[2], wanted + 2);
    r[0] = _mm_clmulepi64_si128(a, b, 0);
    r[1] = _mm_clmulepi64_si128(a, b, 1);
    return same(r, wanted, 32);
}
#endif

#ifdef __VPCLMULQDQ__
int vpclmulqdq(void) {
    __m256i a = _mm256_loadu_si256((const __m256i *)factors), r = _mm256_clmulepi64_epi128(a, a, 0x10);
    u64 wanted[4];
    product(factors[0], factors[1], wanted);
    product(factors[2], factors[3], wanted + 2);
    return same(&r, wanted, 32);
}
#endif

#ifdef __SHA__
static u32 right(u32 x, int by) { return x >> by | x << (32 - by); }

int sha(void) {
    u32 w[8] = {0x61626380, 0x01234567, 0x89abcdef, 0xdeadbeef, 0x00000018, 0x80000000, 0xffffffff, 0x7fffffff};
    u32 h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}, s[4], t[4];
    __m128i low = _mm_loadu_si128((const __m128i *)w), high = _mm_loadu_si128((const __m128i *)(w + 4)), r;
    int good = 1;
    for (int k = 0; k < 4; k++) s[k] = w[k] + (right(w[k + 1], 7) ^ right(w[k + 1], 18) ^ w[k + 1] >> 3);
    r = _mm_sha256msg1_epu32(low, high);
    good &= same(&r, s, 16);
    for (int k = 0; k < 4; k++) {
        u32 x = k < 2 ? w[6 + k] : t[k - 2];
        t[k] = w[k] + (right(x, 17) ^ right(x, 19) ^ x >> 10);
    }
    r = _mm_sha256msg2_epu32(low, high);
    good &= same(&r, t, 16);
    __m128i efab = _mm_set_epi32(h[0], h[1], h[4], h[5]), ghcd = _mm_set_epi32(h[2], h[3], h[6], h[7]);
    r = _mm_sha256rnds2_epu32(ghcd, efab, low);
    for (int k = 0; k < 2; k++) {
        u32 *a = h, *e = h + 4;
        u32 one = h[7] + (right(*e, 6) ^ right(*e, 11) ^ right(*e, 25)) + ((*e & h[5]) ^ (~*e & h[6])) + w[k];
        u32 two = (right(*a, 2) ^ right(*a, 13) ^ right(*a, 22)) + ((*a & h[1]) ^ (*a & h[2]) ^ (h[1] & h[2]));
        for (int i = 7; i > 0; i--) h[i] = h[i - 1];
        h[4] += one, h[0] = one + two;
    }
    __m128i wanted = _mm_set_epi32(h[0], h[1], h[4], h[5]);
    good &= same(&r, &wanted, 16);
    r = _mm_sha1nexte_epu32(low, high);
    u32 e[4] = {w[4], w[5], w[6], w[7] + right(w[3], 2)};
    good &= same(&r, e, 16);
    return good;
}
#endif

#ifdef __ADX__
int adx(void) {
    u64 a[2] = {~0ull, 5}, b[2] = {1, 7}, c[2] = {~0ull - 1, 9};
    u64 x = a[0], y = a[1], p = c[0], q = c[1];
    __asm__("xorl %%eax, %%eax\n\tadcxq %[b0], %[x]\n\tadoxq %[b2], %[p]\n\tadcxq %[b1], %[y]\n\tadoxq %[b1], %[q]\n\t"
            : [x] "+r"(x), [y] "+r"(y), [p] "+r"(p), [q] "+r"(q)
            : [b0] "m"(b[0]), [b1] "r"(b[1]), [b2] "r"(2ull) : "rax", "cc");
    return x == 0 && y == 13 && p == 0 && q == 17;
}
#endif

#ifdef __GFNI__
int gfni(void) {
    unsigned char a[16], b[16], wanted[16];
    for (int k = 0; k < 16; k++) a[k] = 17 * k + 3, b[k] = 29 * k + 91;
    for (int k = 0; k < 16; k++) {
        u32 r = 0;
        for (int bit = 0; bit < 8; bit++)
            if (b[k] >> bit & 1) r ^= (u32)a[k] << bit;
        for (int bit = 14; bit >= 8; bit--)
            if (r >> bit & 1) r ^= 0x11bu << (bit - 8);
        wanted[k] = r;
    }
    __m128i x = _mm_loadu_si128((const __m128i *)a), y = _mm_loadu_si128((const __m128i *)b);
    __m128i r = _mm_gf2p8mul_epi8(x, y), one = _mm_set1_epi64x(0x0102040810204080);
    __m128i inverse = _mm_gf2p8mul_epi8(x, _mm_gf2p8affineinv_epi64_epi8(x, one, 0));
    __m128i ones = _mm_set1_epi8(1), back = _mm_gf2p8affine_epi64_epi8(x, one, 0);
    return same(&r, wanted, 16) && same(&inverse, &ones, 16) && same(&back, &x, 16);
}
#endif
