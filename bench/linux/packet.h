/* What the programs of both sides have in common: the packet that is sent, and the work on it.
 *
 * Each work is one function, `work_…`, of a packet from its IPv4 header on, which has PACKET bytes.
 * eBPF and Postern get the same source: what differs is how they come to the bytes. */
#ifndef PACKET_H
#define PACKET_H

#define HEADERS 28 /* IPv4 and UDP */
#define PAYLOAD 512
#define PACKET (HEADERS + PAYLOAD)

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define INLINE static __attribute__((always_inline)) inline

/* The payload: a request of HTTP, whose last field is filled up. */
#define REQUEST \
	"GET /index.html HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: postern-bench/1\r\n" \
	"Accept: text/html,application/xhtml+xml\r\nAccept-Language: en\r\nConnection: keep-alive\r\n" \
	"Cookie: session=0123456789abcdef; theme=dark\r\nX-Fill: "

/* One term of a filter: whether a byte of the headers or of the request is what it always is. The
 * terms are those of Palladium's Figure 7: all hold, so that all are looked at. */
#define TERM(p, k) (((const u8 *)(p))[HEADERS + (k)] == (u8)REQUEST[k])
#define TERMS_8(p, k) \
	(TERM(p, k) && TERM(p, k + 1) && TERM(p, k + 2) && TERM(p, k + 3) && TERM(p, k + 4) && TERM(p, k + 5) && TERM(p, k + 6) && TERM(p, k + 7))
#define TERMS_100(p) \
	(TERMS_8(p, 0) && TERMS_8(p, 8) && TERMS_8(p, 16) && TERMS_8(p, 24) && TERMS_8(p, 32) && TERMS_8(p, 40) && TERMS_8(p, 48) && \
	 TERMS_8(p, 56) && TERMS_8(p, 64) && TERMS_8(p, 72) && TERMS_8(p, 80) && TERMS_8(p, 88) && TERM(p, 96) && TERM(p, 97) && \
	 TERM(p, 98) && TERM(p, 99))

/* The fields of a request's head: how many, and how long the value of Host is. */
struct fields {
	u32 count, host, end;
};

INLINE int lower(int c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }

/* Where the reader of a head is: in which column of a line, and what it saw of it. */
struct reader {
	struct fields found;
	u32 column, matched, line, value, is_host;
};

/* Reads one byte; 1 at the end of the head. */
INLINE int read_byte(struct reader *r, u32 k, int c)
{
	if (c == '\n') {
		if (r->column <= 1) {
			r->found.end = k;
			return 1;
		}
		if (r->is_host)
			r->found.host = r->value;
		r->found.count += r->line;
		r->line = 1;
		r->column = r->matched = r->value = r->is_host = 0;
		return 0;
	}
	if (r->column < 5 && lower(c) == "host:"[r->column])
		r->matched++;
	if (r->column == 4 && r->matched == 5)
		r->is_host = 1;
	else if (r->is_host && c != ' ' && c != '\r')
		r->value++;
	r->column++;
	return 0;
}

INLINE struct fields work_http(const u8 *packet)
{
	struct reader reader = { { 0, 0, 0 }, 0, 0, 0, 0, 0 };

	for (u32 k = HEADERS; k < PACKET; k++)
		if (read_byte(&reader, k, packet[k]))
			break;
	return reader.found;
}

static const u32 sha_k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
	0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
	0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
	0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
	0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

INLINE u32 rotated(u32 x, int n) { return x >> n | x << (32 - n); }

/* SHA-256 (FIPS 180-4) of the payload's eight blocks, without the block of padding: the first word
 * of the state. */
INLINE u32 work_sha256(const u8 *packet)
{
	u32 h[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	for (u32 block = 0; block < PAYLOAD / 64; block++) {
		const u8 *m = packet + HEADERS + block * 64;
		u32 w[64], s[8];

		for (u32 k = 0; k < 16; k++)
			w[k] = (u32)m[4 * k] << 24 | m[4 * k + 1] << 16 | m[4 * k + 2] << 8 | m[4 * k + 3];
		for (u32 k = 16; k < 64; k++) {
			u32 a = w[k - 15], b = w[k - 2];

			w[k] = w[k - 16] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) + w[k - 7] + (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
		}
		for (u32 k = 0; k < 8; k++)
			s[k] = h[k];
		for (u32 k = 0; k < 64; k++) {
			u32 a = s[0], e = s[4];
			u32 t = s[7] + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & s[5]) ^ (~e & s[6])) + sha_k[k] + w[k];
			u32 u = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));

			s[7] = s[6], s[6] = s[5], s[5] = e, s[4] = s[3] + t, s[3] = s[2], s[2] = s[1], s[1] = a, s[0] = t + u;
		}
		for (u32 k = 0; k < 8; k++)
			h[k] += s[k];
	}
	return h[0];
}

/* A thousand rules: source network, mask, and what becomes of the packet; the first that holds
 * counts, and only the last one does. Filled at run time, so that no compiler knows them. */
struct rule {
	u32 net, mask, verdict;
};
#define RULES 1000

INLINE u32 work_rules(const u8 *packet, const struct rule *rules)
{
	u32 source = (u32)packet[12] << 24 | packet[13] << 16 | packet[14] << 8 | packet[15];

	for (u32 k = 0; k < RULES; k++)
		if ((source & rules[k].mask) == rules[k].net)
			return rules[k].verdict;
	return 0;
}

#endif
