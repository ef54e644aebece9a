/* Another version of ExOS: all four pieces of the library replaced, and its name. */
#include <stdint.h>
#include <sys/mman.h>

#include <exos/fault.h>
#include <exos/page-table.h>
#include <exos/pager.h>
#include <exos/process.h>
#include <exos/schedule.h>

const char exos_version[] = "another ExOS 7";

/* The page table: pairs of page and entry, looked for one by one. words[0] counts them. */
static EXOS_HANDLER void clear(uint64_t *words, size_t count)
{
	words[0] = 0;
	(void)count;
}

static EXOS_HANDLER uint64_t *find(uint64_t *words, size_t count, uint64_t page)
{
	(void)count;
	for (uint64_t *at = &words[2 * words[0]]; at > words; at -= 2)
		if (at[-1] == page)
			return at;
	return NULL;
}

static EXOS_HANDLER int insert(uint64_t *words, size_t count, uint64_t page, uint64_t entry)
{
	uint64_t *found = find(words, count, page);

	if (!found) {
		if (words[0] == (count - 1) / 2)
			return -1;
		found = &words[2 * ++words[0]];
		found[-1] = page;
	}
	*found = entry;
	return 0;
}

static EXOS_HANDLER uint64_t take(uint64_t *words, size_t count, uint64_t page)
{
	uint64_t *found = find(words, count, page), *last = &words[2 * words[0]];
	uint64_t entry = found ? *found : 0;

	if (found) {
		found[-1] = last[-1];
		*found = *last;
		words[0]--;
	}
	return entry;
}

static EXOS_HANDLER void each(uint64_t *words, size_t count, uint64_t first, uint64_t end,
			      exos_change *change, void *argument)
{
	/* From the last on: what takes a removed one's place was asked before. */
	for (uint64_t *at = &words[2 * words[0]]; at > words; at -= 2) {
		if (at[-1] < first || at[-1] >= end)
			continue;
		*at = change(at[-1], *at, argument);
		if (*at == 0)
			take(words, count, at[-1]);
	}
}

const struct exos_page_table exos_page_table = { clear, find, insert, take, each };

/* Faults where nobody has anything are memory, up to a place. */
EXOS_HANDLER int exos_fault_policy(struct exos_fault *fault, int reason)
{
	void *page = (void *)(fault->address & -EXOS_PAGE);

	if (reason != EXOS_FAULT_NOTHING || fault->address >> 40 != 0x20)
		return 0;
	return mmap(page, EXOS_PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page;
}

EXOS_HANDLER size_t exos_pager_victim(struct exos_pager *pager)
{
	return pager->of[(pager->wanted + pager->pages - 1) % pager->pages];
}

static int last_first(struct exos_schedule *schedule)
{
	for (int place = schedule->count - 1; place >= 0; place--)
		if (exos_schedule_able(schedule, place))
			return place;
	return -1;
}

const struct exos_policy exos_scheduler = { .choose = last_first };
