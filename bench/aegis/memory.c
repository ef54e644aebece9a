/* Pages bound to addresses, protected and taken away, and page faults that a handler serves. The pages
 * are a file's in memory: they are there before, as those of an environment are, and nobody clears any. */
#include "measure.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static int file;
static char *place;

static long map(long pages)
{
	return call6(SYS_mmap, (long)place, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, 0);
}

static void named(const char *what, long pages, uint64_t took)
{
	char name[64];

	snprintf(name, sizeof name, pages == 1 ? "%s" : "%s-%ld", what, pages);
	row(name, took);
}

static void primitives(long pages)
{
	uint64_t least[4], took;

	memset(least, 0xff, sizeof least);
	/* In turn, so that each finds what it needs. */
	for (int try = 0; try < 10; try++) {
		long results[4];

		for (int k = 0; k < 4; k++) {
			uint64_t begun = now();

			switch (k) {
			case 0: results[k] = map(pages) == (long)place ? 0 : -1; break;
			case 1: results[k] = call3(SYS_mprotect, place, pages * PAGE, PROT_READ); break;
			case 2: results[k] = call3(SYS_mprotect, place, pages * PAGE, PROT_READ | PROT_WRITE); break;
			default: results[k] = call3(SYS_munmap, place, pages * PAGE, 0);
			}
			took = now() - begun - clock_itself();
			least[k] = took < least[k] ? took : least[k];
			if (results[k])
				fail("primitives");
			/* Written pages stay writable in the tables. */
			for (long page = 0; k != 1 && k != 3 && page < pages; page++)
				((volatile char *)place)[page * PAGE] = 1;
		}
	}
	named("mmap", pages, least[0]);
	named("mprotect-less", pages, least[1]);
	named("mprotect-more", pages, least[2]);
	named("munmap", pages, least[3]);
}

/* The handler of a page that is missing: binds one, and the program goes on at the same instruction. */
static uint64_t arrived;

static void missing(int number)
{
	arrived = now();
	(void)number;
	if (map(1) != (long)place)
		fail("mmap in a handler");
}

static void served_by_signal(void)
{
	struct sigaction action = { .sa_handler = missing };
	uint64_t to = ~0ull, trip = ~0ull;

	sigaction(SIGSEGV, &action, NULL);
	for (int try = 0; try < TRIES; try++) {
		uint64_t begun, took, clock = clock_itself();

		call3(SYS_mprotect, place, PAGE, PROT_NONE);
		call6(SYS_mmap, (long)place, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		begun = now();
		*(volatile char *)place;
		took = now() - begun - clock;
		trip = took < trip ? took : trip;
		took = arrived - begun - clock;
		to = took < to ? took : to;
	}
	signal(SIGSEGV, SIG_DFL);
	row("translation", to);
	row("translation-trip", trip);
}

/* The same by another thread, which the kernel tells of missing pages. */
static int faults;

static void *serves(void *unused)
{
	struct uffd_msg message;

	while (call3(SYS_read, faults, &message, sizeof message) == sizeof message) {
		struct uffdio_zeropage zero = { .range = { message.arg.pagefault.address & -PAGE, PAGE } };

		if (call3(SYS_ioctl, faults, UFFDIO_ZEROPAGE, &zero))
			fail("UFFDIO_ZEROPAGE");
	}
	return unused;
}

static void served_by_thread(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register all = { .range = { (uint64_t)place, PAGE }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	pthread_t thread;
	uint64_t trip;

	if (mmap(place, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		fail("mmap");
	faults = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (faults < 0 || ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &all))
		fail("userfaultfd");
	if (pthread_create(&thread, NULL, serves, NULL))
		fail("a thread");
	trip = ~0ull;
	for (int try = 0; try < TRIES; try++) {
		uint64_t begun, took, clock = clock_itself();

		call3(SYS_madvise, place, PAGE, MADV_DONTNEED);
		begun = now();
		*(volatile char *)place;
		took = now() - begun - clock;
		trip = took < trip ? took : trip;
	}
	row("userfaultfd-trip", trip);
}

void memory(void)
{
	place = mmap(NULL, MANY * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	file = syscall(SYS_memfd_create, "pages", 0);
	if (place == MAP_FAILED || file < 0 || ftruncate(file, MANY * PAGE))
		fail("memory");
	map(MANY);
	memset(place, 1, MANY * PAGE);
	primitives(1);
	primitives(MANY);
	served_by_signal();
	served_by_thread();
}
