/* Postern's side: one extension with a function for each work of a packet. */
#include <stddef.h>

#include "packet.h"

/* Read by the bench through calls: what the works found. */
static u32 http_count, http_host, hash;
static struct rule rules[RULES];

long empty(const u8 *packet, size_t captured, size_t length, long hook) { return 1; }
long terms_1(const u8 *packet, size_t captured, size_t length, long hook) { return captured > HEADERS && TERM(packet, 0); }
long terms_8(const u8 *packet, size_t captured, size_t length, long hook) { return captured >= HEADERS + 8 && TERMS_8(packet, 0); }
long terms_100(const u8 *packet, size_t captured, size_t length, long hook) { return captured >= HEADERS + 100 && TERMS_100(packet); }

long http(const u8 *packet, size_t captured, size_t length, long hook)
{
	if (captured >= PACKET) {
		struct fields found = work_http(packet);

		http_count = found.count, http_host = found.host;
	}
	return 1;
}

long sha256(const u8 *packet, size_t captured, size_t length, long hook)
{
	if (captured >= PACKET)
		hash = work_sha256(packet);
	return 1;
}

long fill_rules(void)
{
	for (u32 k = 0; k < RULES; k++)
		rules[k] = (struct rule){ 0x0a000000 + k * 256, 0xffffff00, 0 };
	rules[RULES - 1] = (struct rule){ 0x7f000000, 0xff000000, 1 };
	return 0;
}

long thousand(const u8 *packet, size_t captured, size_t length, long hook)
{
	return captured >= HEADERS ? work_rules(packet, rules) : 0;
}

long found(long which) { return which == 0 ? http_count : which == 1 ? http_host : hash; }
long fault(u64 at) { return *(volatile long *)at; }
