/* A packet filter: drops what comes from one of a thousand networks.
 *
 * BUG makes a version that follows a pointer that it never set, for one of them; STRICT one with
 * another rule more. */
#include <stddef.h>
#include <stdint.h>

#define RULES 1000

struct rule {
	uint32_t net, mask;
	unsigned long *hits;
};

static struct rule rules[RULES];
static unsigned long hits[RULES];
static unsigned filled;

/* The rules: 127.0.0.0/24 to 127.3.231.0/24, each second of which is there to be passed over. */
static void fill(void)
{
	for (unsigned k = 0; k < RULES; k++) {
		uint32_t net = 0x7f000000 + (k << 8);

		rules[k] = (struct rule){ k % 2 ? net : 0x0a000000 + (k << 8), 0xffffff00, &hits[k] };
#ifdef BUG
		if (k == 501)
			rules[k].hits = 0;
#endif
	}
	filled = 1;
}

static struct rule *matching(uint32_t source)
{
	for (struct rule *rule = rules; rule < rules + RULES; rule++)
		if ((source & rule->mask) == rule->net)
			return rule;
	return NULL;
}

/* 0 drops the packet. */
long filter(const uint8_t *packet, size_t captured, size_t length, long hook)
{
	uint32_t source;
	struct rule *rule;

	(void)length, (void)hook;
	if (captured < 20)
		return 1;
	if (!filled)
		fill();
	source = (uint32_t)packet[12] << 24 | packet[13] << 16 | packet[14] << 8 | packet[15];
#ifdef STRICT
	if (source >> 16 == 0x7f04)
		return 0;
#endif
	rule = matching(source);
	if (!rule)
		return 1;
	++*rule->hits;
	return 0;
}
