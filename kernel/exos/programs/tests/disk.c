/* Blocks of the disk: what was written is read, whatever else is under way, and what cannot be is said. */
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/disk.h>
#include <exos/service.h>

enum { BLOCKS = 300, MANY = 100, PAGE = 4096, ROUNDS = 400 };

static char buffer[MANY * PAGE] __attribute__((aligned(PAGE)));
static int range;

static unsigned random_below(unsigned end)
{
	static uint64_t seed = 7;
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (unsigned)(seed >> 33) % end;
}

static void fill(char *page, unsigned block, unsigned version)
{
	for (unsigned at = 0; at < PAGE; at += 8)
		*(uint64_t *)(page + at) = (uint64_t)version << 32 | block << 12 | at;
}

static int has(const char *page, unsigned block, unsigned version)
{
	for (unsigned at = 0; at < PAGE; at += 8)
		if (*(const uint64_t *)(page + at) != ((uint64_t)version << 32 | block << 12 | at))
			return 0;
	return 1;
}

/* Pages that nobody has touched. */
static char *fresh(size_t count)
{
	char *all = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		abort();
	return all;
}

/* Random runs of blocks, written and read. */
static void blocks_are_kept(void)
{
	unsigned versions[BLOCKS] = { 0 };
	for (unsigned block = 0; block < BLOCKS; block++) {
		fill(buffer, block, 0);
		CHECK(exos_disk_write(range, block, buffer, 1) == 0);
	}
	for (unsigned round = 1; round < ROUNDS; round++) {
		unsigned count = 1 + random_below(MANY), first = random_below(BLOCKS - count + 1);
		if (random_below(2)) {
			for (unsigned at = 0; at < count; at++)
				fill(buffer + at * PAGE, first + at, versions[first + at] = round);
			CHECK(exos_disk_write(range, first, buffer, count) == 0);
		} else {
			CHECK(exos_disk_read(range, first, buffer, count) == 0);
			for (unsigned at = 0; at < count; at++)
				CHECK(has(buffer + at * PAGE, first + at, versions[first + at]));
		}
		if (!random_below(50))
			CHECK(exos_disk_flush(range) == 0);
	}
}

/* Pages that have never been touched, that are shared with a copy, and that are constants. */
static void pages_of_all_kinds(void)
{
	static const char constant[PAGE] __attribute__((aligned(PAGE))) = "constant";
	char *page = fresh(3);
	CHECK(exos_disk_write(range, 1, constant, 1) == 0);
	CHECK(exos_disk_write(range, 2, page, 1) == 0);
	CHECK(exos_disk_read(range, 1, page + PAGE, 1) == 0 && !strcmp(page + PAGE, "constant"));
	CHECK(exos_disk_read(range, 2, page + 2 * PAGE, 1) == 0 && !page[2 * PAGE]);
	/* A copy has the pages with its parent, and no range. */
	int status;
	strcpy(page, "shared");
	pid_t child = fork();
	if (child == 0)
		_exit(exos_disk_read(range, 1, page, 1) == -1 && !strcmp(page, "shared") ? 0 : 1);
	CHECK(exos_disk_write(range, 3, page, 1) == 0);
	CHECK(exos_disk_read(range, 3, page + PAGE, 1) == 0 && !strcmp(page + PAGE, "shared"));
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	munmap(page, 3 * PAGE);
}

static int rounds(int of, unsigned block)
{
	char *page = fresh(1);
	for (unsigned round = 0; round < 50; round++) {
		fill(page, block, round);
		if (exos_disk_write(of, block, page, 1))
			return 0;
		memset(page, 0, PAGE);
		if (exos_disk_read(of, block, page, 1) || !has(page, block, round))
			return 0;
	}
	munmap(page, PAGE);
	return 1;
}

/* A copy that has blocks of its own asks beside its parent. */
static void copies_have_their_own(void)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		long own = exos_blocks(8);
		_exit(own > 0 && own != range && rounds((int)own, 3) ? 0 : 1);
	}
	CHECK(rounds(range, 5));
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void what_cannot_be_is_said(void)
{
	CHECK(exos_disk_blocks(range) == BLOCKS);
	CHECK(exos_disk_read(range, BLOCKS, buffer, 1) == -1 && errno == EINVAL);
	CHECK(exos_disk_read(range, BLOCKS - 1, buffer, 2) == -1 && errno == EINVAL);
	CHECK(exos_disk_write(range, UINT64_MAX, buffer, 2) == -1 && errno == EINVAL);
	CHECK(exos_disk_read(range, 0, buffer + 8, 1) == -1 && errno == EINVAL);
	CHECK(exos_disk_read(range, 0, buffer, 0) == 0);
	CHECK(exos_disk_read(range + 50, 0, buffer, 1) == -1 && errno == ENODEV);
	CHECK(exos_disk_flush(0) == -1 && errno == ENODEV);
	CHECK(exos_disk_blocks(-1) == -1 && errno == ENODEV);
	/* The files' range is its server's. */
	CHECK(exos_disk_read(3, 0, buffer, 1) == -1);
	CHECK(exos_disk_write(3, 0, buffer, 1) == -1);
}

static void there_is_no_disk(void)
{
	struct exos_disk_files how = { .name = "/" };
	CHECK(exos_disk_blocks(3) == -1 && errno == ENODEV);
	CHECK(exos_disk_read(3, 0, buffer, 1) == -1 && errno == ENODEV);
	CHECK(exos_files_on_disk(&how) == -1 && errno == ENODEV);
	how.name = "/other", how.blocks = 64;
	CHECK(exos_files_on_disk(&how) == -1 && errno == ENOSPC);
}

int main(void)
{
	range = (int)exos_blocks(BLOCKS);
	if (range < 0) {
		RUN(there_is_no_disk);
		return failures != 0;
	}
	RUN(blocks_are_kept);
	RUN(pages_of_all_kinds);
	RUN(copies_have_their_own);
	RUN(what_cannot_be_is_said);
	return failures != 0;
}
