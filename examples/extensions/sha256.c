/* SHA-256 (FIPS 180-4) of a buffer; writes 32 bytes of digest. */
#include <stdint.h>
#include <string.h>

static const uint32_t K[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

/* One round; the caller turns the names instead of moving the values. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                          \
	do {                                                                                      \
		uint32_t t = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +                 \
			     ((e & f) ^ (~e & g)) + K[i] + w[i];                                  \
		d += t;                                                                           \
		h = t + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +                          \
		    ((a & b) ^ (a & c) ^ (b & c));                                                \
	} while (0)

static void block(uint32_t s[8], const unsigned char *p)
{
	uint32_t w[64];
	uint32_t a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | p[4 * i + 1] << 16 | p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++) {
		uint32_t x = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t y = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
		w[i] = w[i - 16] + x + w[i - 7] + y;
	}
	for (int i = 0; i < 64; i += 8) {
		ROUND(a, b, c, d, e, f, g, h, i);
		ROUND(h, a, b, c, d, e, f, g, i + 1);
		ROUND(g, h, a, b, c, d, e, f, i + 2);
		ROUND(f, g, h, a, b, c, d, e, i + 3);
		ROUND(e, f, g, h, a, b, c, d, i + 4);
		ROUND(d, e, f, g, h, a, b, c, i + 5);
		ROUND(c, d, e, f, g, h, a, b, i + 6);
		ROUND(b, c, d, e, f, g, h, a, i + 7);
	}
	s[0] += a;
	s[1] += b;
	s[2] += c;
	s[3] += d;
	s[4] += e;
	s[5] += f;
	s[6] += g;
	s[7] += h;
}

void sha256(const unsigned char *data, unsigned long size, unsigned char *digest)
{
	uint32_t h[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};
	unsigned char tail[128] = { 0 };
	unsigned long whole = size & ~63ul, rest = size & 63;
	unsigned long length = rest < 56 ? 64 : 128;
	for (unsigned long i = 0; i < whole; i += 64)
		block(h, data + i);
	memcpy(tail, data + whole, rest);
	tail[rest] = 0x80;
	for (int i = 0; i < 8; i++)
		tail[length - 1 - i] = (unsigned char)(size * 8 >> 8 * i);
	for (unsigned long i = 0; i < length; i += 64)
		block(h, tail + i);
	for (int i = 0; i < 32; i++)
		digest[i] = (unsigned char)(h[i / 4] >> (24 - 8 * (i % 4)));
}
