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

static void touch(long pages)
{
	for (long page = 0; page < pages; page++)
		((volatile char *)place)[page * PAGE] = 1;
}

/* A row: what is measured, and what makes that possible once more. */
#define PRIMITIVE(what, before, measured, after)                                        \
	do {                                                                            \
		uint64_t least_ = ~0ull, clock_ = clock_itself();                       \
		long result_ = 0;                                                       \
		char name_[64];                                                         \
		for (int try_ = 0; try_ < 10; try_++) {                                 \
			before;                                                         \
			MARK(BEGIN);                                                    \
			uint64_t begun_ = now();                                        \
			result_ |= measured;                                            \
			uint64_t took_ = now() - begun_ - clock_;                       \
			MARK(END);                                                      \
			after;                                                          \
			if (took_ < least_)                                             \
				least_ = took_;                                         \
		}                                                                       \
		if (result_)                                                            \
			fail(what);                                                     \
		snprintf(name_, sizeof name_, pages == 1 ? what : what "-%ld", pages);  \
		row(name_, least_, 1);                                                  \
	} while (0)

static long unmap(long pages)
{
	return call3(SYS_munmap, place, pages * PAGE, 0);
}

static long protect(long pages, int protection)
{
	return call3(SYS_mprotect, place, pages * PAGE, protection);
}

static void primitives(long pages)
{
	PRIMITIVE("mmap", unmap(pages), map(pages) != (long)place, );
	PRIMITIVE("mprotect-less", touch(pages), protect(pages, PROT_READ), protect(pages, PROT_READ | PROT_WRITE));
	PRIMITIVE("mprotect-more", (touch(pages), protect(pages, PROT_READ)), protect(pages, PROT_READ | PROT_WRITE), );
	PRIMITIVE("munmap", touch(pages), unmap(pages), map(pages));
}

/* The handler of a page that is missing: binds one, and the program goes on at the same instruction. */
static uint64_t arrived;

static void returns(int number)
{
	(void)number;
	if (map(1) != (long)place)
		fail("mmap in a handler");
}

static void arrives(int number)
{
	arrived = now();
	MARK(END);
	returns(number);
}

/* What a read of the missing page takes, to the handler or until it is done. */
static uint64_t missing(void (*handler)(int), int whole)
{
	struct sigaction action = { .sa_handler = handler };
	uint64_t least = ~0ull;

	sigaction(SIGSEGV, &action, NULL);
	for (int try = 0; try < TRIES; try++) {
		uint64_t begun, ended, clock = clock_itself();

		call6(SYS_mmap, (long)place, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		MARK(BEGIN);
		begun = now();
		*(volatile char *)place;
		ended = now();
		MARK(END);
		if (!whole)
			ended = arrived;
		if (ended - begun - clock < least)
			least = ended - begun - clock;
	}
	signal(SIGSEGV, SIG_DFL);
	return least;
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
		MARK(BEGIN);
		begun = now();
		*(volatile char *)place;
		took = now() - begun - clock;
		MARK(END);
		trip = took < trip ? took : trip;
	}
	row("userfaultfd-trip", trip, 1);
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
	row("translation", missing(arrives, 0), 1);
	row("translation-trip", missing(returns, 1), 1);
	served_by_thread();
}
