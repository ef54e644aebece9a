/* A program that pages by its own policy. It goes over its data again and again, one page after
   the other, and allows itself fewer physical pages than that. Whoever evicts the least recently
   used page evicts the one that is needed next; the program knows that it needs the last one
   again latest. */
#include <stdio.h>

#include <exos/pager.h>

#define PAGES 64
#define FRAMES 48
#define ROUNDS 20

/* The page before the missing one was used last, and is needed again after all others. */
static EXOS_HANDLER size_t most_recent(struct exos_pager *pager)
{
	return pager->of[(pager->wanted + pager->pages - 1) % pager->pages];
}

/* What exact LRU would miss: calculated. */
static unsigned long least_recent(void)
{
	unsigned long misses = 0, used[PAGES] = { 0 }, time = 0;
	size_t present = 0;

	for (int round = 0; round < ROUNDS; round++)
		for (int page = 0; page < PAGES; page++) {
			if (used[page] == 0) {
				misses++;
				if (present == FRAMES) {
					int oldest = -1;

					for (int other = 0; other < PAGES; other++)
						if (used[other] && (oldest < 0 || used[other] < used[oldest]))
							oldest = other;
					used[oldest] = 0;
				} else {
					present++;
				}
			}
			used[page] = ++time;
		}
	return misses;
}

/* The work: every word of every page, each round. */
static int scan(const char *policy, exos_victim *victim, unsigned long *misses)
{
	struct exos_pager pager;

	if (exos_pager_begin(&pager, PAGES, FRAMES, victim)) {
		perror("pager");
		return 1;
	}
	for (long round = 0; round < ROUNDS; round++)
		for (long page = 0; page < PAGES; page++) {
			volatile long *words = (volatile long *)(pager.region + page * EXOS_PAGE);

			for (long word = 0; word < EXOS_PAGE / 8; word++) {
				if (words[word] != (round ? page * word + round - 1 : 0)) {
					printf("%s: page %ld, word %ld is %ld in round %ld\n", policy, page, word, words[word], round);
					return 1;
				}
				words[word] = page * word + round;
			}
		}
	printf("%-22s %5lu misses, %5lu pages written to the store\n", policy, pager.misses, pager.written);
	*misses = pager.misses;
	exos_pager_end(&pager);
	return 0;
}

int main(void)
{
	unsigned long exact = least_recent(), lru, own;

	printf("%d pages, %d of them physical, gone over %d times\n", PAGES, FRAMES, ROUNDS);
	printf("%-22s %5lu misses\n", "LRU, calculated", exact);
	if (scan("LRU, as a clock", NULL, &lru) || scan("the program's own", most_recent, &own))
		return 1;
	printf("own policy: %lu.%lu times fewer misses than LRU\n", lru / own, lru * 10 / own % 10);
	return own < lru && own < exact ? 0 : 1;
}
