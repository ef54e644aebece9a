/* What an image for the kernel is made of: loops, pointers, structures, functions that call each
 * other, a switch, globals. `run` calls all of it and folds what comes out into a number. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rule {
	uint32_t net, mask;
	uint16_t low, high;
	int8_t verdict;
	const char *name;
};

struct list {
	struct list *next;
	uint64_t key;
	long count;
};

static struct rule rules[256];
static int rule_count;
static struct list nodes[64], *buckets[8];
static int used;
static long kinds[6];
static const char *const names[] = { "any", "web", "mail", "none at all" };
static uint64_t state;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint32_t load32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static struct list *find(uint64_t key)
{
	struct list **at = &buckets[key * 0x9e3779b97f4a7c15u >> 61];
	for (; *at; at = &(*at)->next)
		if ((*at)->key == key)
			return *at;
	if (used == 64)
		return 0;
	*at = &nodes[used++];
	**at = (struct list){ .key = key };
	return *at;
}

static int search(uint32_t from, uint16_t port)
{
	for (int k = 0; k < rule_count; k++) {
		const struct rule *r = &rules[k];
		if ((from & r->mask) == r->net && port >= r->low && port <= r->high)
			return r->verdict;
	}
	return -1;
}

static int kind(uint8_t protocol)
{
	switch (protocol) {
	case 1: return 0;
	case 6: return 1;
	case 17: return 2;
	case 50: return 3;
	case 51: return 4;
	case 58: return 5;
	case 132: return 1;
	default: return -1;
	}
}

int filter(const uint8_t *packet, size_t n)
{
	if (n < 24)
		return -2;
	int k = kind(packet[9]);
	if (k >= 0)
		kinds[k]++;
	uint32_t from = load32(packet + 12);
	struct list *seen = find(from & 0xff00ff00);
	if (seen)
		seen->count += (long)n;
	return search(from, (uint16_t)(packet[22] << 8 | packet[23]));
}

static void add(void)
{
	struct rule r;
	memset(&r, 0, sizeof r);
	r.mask = (uint32_t)(~0ull << (next() % 33));
	r.net = (uint32_t)next() & r.mask;
	r.low = (uint16_t)next();
	r.high = (uint16_t)(r.low + next() % 30000);
	r.verdict = (int8_t)(next() % 100);
	r.name = names[next() & 3];
	memcpy(&rules[rule_count++], &r, sizeof r);
}

static void swap(struct rule *a, struct rule *b)
{
	struct rule c = *a;
	*a = *b;
	*b = c;
}

/* Shell's sort: what sorts without recursion. */
static void sort(void)
{
	for (int gap = rule_count / 2; gap; gap /= 2)
		for (int i = gap; i < rule_count; i++)
			for (int j = i; j >= gap && rules[j - gap].net > rules[j].net; j -= gap)
				swap(&rules[j - gap], &rules[j]);
}

static uint64_t fold(uint64_t sum, uint64_t value)
{
	return (sum << 9 | sum >> 55) * 0x100000001b3 ^ value;
}

uint64_t run(uint64_t seed)
{
	uint8_t packet[96], copy[96];
	uint64_t sum = 0;
	state = seed | 1;
	rule_count = used = 0;
	memset(buckets, 0, sizeof buckets);
	memset(kinds, 0, sizeof kinds);
	while (rule_count < 200)
		add();
	sort();
	for (int k = 0; k < 500; k++) {
		size_t n = 20 + next() % 77;
		for (size_t b = 0; b < n; b++)
			packet[b] = (uint8_t)next();
		static const uint8_t protocols[] = { 1, 6, 17, 50, 51, 58, 132, 4 };
		packet[9] = protocols[next() & 7];
		sum = fold(sum, (uint64_t)filter(packet, n));
		memcpy(copy, packet, n);
		size_t by = next() % 16, length = next() % 60;
		memmove(copy + by, copy + next() % 16, length);
		int order = memcmp(copy, packet, n);
		sum = fold(sum, (uint64_t)(order > 0) - (order < 0));
		sum = fold(sum, copy[next() % n]);
		sum = fold(sum, sum / (next() % 1000 + 1) + (uint64_t)((int64_t)sum % -77));
	}
	for (int k = 0; k < 6; k++)
		sum = fold(sum, (uint64_t)kinds[k]);
	for (int k = 0; k < used; k++)
		sum = fold(sum, (uint64_t)nodes[k].count);
	for (int k = 0; k < rule_count; k++)
		sum = fold(sum, strlen(rules[k].name) + rules[k].net);
	return sum;
}
