/* The registry under attack: requests at random and with malice. It goes on, and gives nobody what is another's. */
#include "check.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/memory.h>
#include <exos/process.h>

enum { CREATE = 1, START, REPLACE, COMMIT, KEEP, ROOM, LIMIT, EXIT, REAP, KILL, SLICE, GROUP, TYPED, SERVE, BLOCKS, HOLDINGS, STOP, OPERATIONS };

/* What a request to stop the machine begins with. */
#define STOPS 0x66666f7265776f50ULL
#define OF(operation) ((operation) | 1ULL << 32)
#define NUMBERS ((volatile uint32_t *)(0x7e0000130000 + 64))

static int status_of(pid_t pid)
{
	int status = -1;
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static int64_t ask(uint64_t operation, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	uint64_t words[5] = {operation, a, b, c, d};
	for (int tries = 0; tries < 20000; tries++) {
		if (exos_ask(words) == 0 && (int64_t)words[0] != -EBUSY)
			return (int64_t)words[0];
		/* The registry runs elsewhere, or is busy. */
		usleep(1);
		words[0] = operation, words[1] = a, words[2] = b, words[3] = c, words[4] = d;
	}
	return -EBUSY;
}

static uint64_t state = 88172645463325252ULL;

static uint64_t any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* A word as somebody would choose it who wants harm. */
static uint64_t bad(void)
{
	static const uint64_t edges[] = {0, 1, 2, 254, 255, 256, 4096, 0x400000, 0x7e0000000000, 1ULL << 31, 1ULL << 32, 1ULL << 63, ~0ULL};
	uint64_t pick = any();
	if (pick & 1)
		return edges[(pick >> 8) % (sizeof edges / sizeof *edges)];
	return pick & 2 ? any() % 300 : any();
}

static void requests_of_nobody(void)
{
	CHECK(ask(OF(0), 0, 0, 0, 0) == -ENOSYS);
	CHECK(ask(OF(OPERATIONS), 0, 0, 0, 0) == -ENOSYS);
	CHECK(ask(OF(~0U), 0, 0, 0, 0) == -ENOSYS);
	CHECK(ask(OF(START), 1, 0, 0, 0) == -EPERM);
	CHECK(ask(OF(START), 9999, 0, 0, 0) == -ESRCH);
	CHECK(ask(OF(COMMIT), 0, 0, 0, 0) == -EINVAL);
	CHECK(ask(OF(REAP), 1, 0, 0, 0) == -ECHILD);
	CHECK(ask(OF(REAP), (uint64_t)getpid(), 0, 0, 0) == -ECHILD);
	CHECK(ask(OF(ROOM), 1ULL << 40, 0, 0, 0) == -ENOMEM);
	CHECK(ask(OF(ROOM), 1ULL << 31, 0, 0, 0) == -ENOMEM);
	CHECK(ask(OF(CREATE), 0x400000, 1ULL << 31, 0, 0) == -ENOMEM);
	CHECK(ask(OF(LIMIT), 17, 0, 0, 0) == -EINVAL);
	CHECK(ask(OF(KILL), (uint64_t)getpid(), 1ULL << 32, 0, 0) == -EINVAL);
	if (getpid() != 1) {
		CHECK(ask(OF(SLICE), 1, 1, 0, 0) == -EPERM);
		CHECK(ask(OF(KILL), 1, SIGKILL, 0, 0) == -EPERM);
	}
}

/* What numbers mean elsewhere is not known here: nothing is done. */
static void requests_of_other_versions(void)
{
	for (uint64_t operation = 0; operation <= OPERATIONS; operation++) {
		CHECK(ask(operation, (uint64_t)getpid(), 1, 0, 0) == -EPROTO);
		CHECK(ask(operation | 2ULL << 32, (uint64_t)getpid(), 1, 0, 0) == -EPROTO);
		CHECK(ask(operation | 0xffffffffULL << 32, (uint64_t)getpid(), 1, 0, 0) == -EPROTO);
	}
}

/* Pages that nobody gave, that are the registry's own, or that are none. */
static void pages_of_others(void)
{
	CHECK(ask(OF(KEEP), 1009, 1, 0, 0) == -EINVAL);
	CHECK(ask(OF(KEEP), ~0ULL, 1, 0, 0) == -EINVAL);
	for (uint32_t page = 0; page < 40000; page += 7) {
		NUMBERS[0] = page;
		CHECK(ask(OF(KEEP), 1, 1, 0, 0) == -EPERM);
	}
	NUMBERS[0] = ~0U;
	CHECK(ask(OF(KEEP), 1, 1, 0, 0) == -EPERM);
}

/* The machine is stopped by who means it and has no limits, and by nobody else. */
static void who_has_limits_stops_nothing(void)
{
	CHECK(ask(OF(STOP), 0, 0, 0, 0) == -EINVAL);
	CHECK(ask(OF(STOP), STOPS, 64, 0, 0) == -EINVAL);
	CHECK(ask(OF(STOP), STOPS ^ 1, 0, 0, 0) == -EINVAL);
	pid_t pid = fork();
	if (pid == 0) {
		if (exos_limit(EXOS_LIMIT_PROCESSES, 5))
			_exit(1);
		_exit(exos_stop(1) == -1 && errno == EPERM ? 0 : 2);
	}
	CHECK(status_of(pid) == 0);
}

static int64_t call(uint64_t number, uint64_t a, uint64_t b)
{
	int64_t result = (int64_t)number;
	__asm__ volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(0) : "rcx", "r8", "r9", "r10", "r11", "memory");
	return result;
}

enum { GIVE = 12, TAKE_SLICE = 25, QUOTA = -7, ROOT = 1 };

/* A page of this process's own that comes now, and is given; its number. */
static uint32_t gives(char *at)
{
	*at = 1;
	long number = exos_page_number(at);
	return number > 0 && call(GIVE, (uint64_t)number, ROOT) == 0 ? (uint32_t)number : 0;
}

/* A page that stands there twice is one, to keep and to count. */
static void pages_twice(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		if (exos_limit(EXOS_LIMIT_PAGES, 3000))
			_exit(1);
		for (int round = 0; round < 20; round++) {
			char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			uint32_t number = gives(at);
			for (int place = 0; place < 1000; place++)
				NUMBERS[place] = number;
			if (!number || ask(OF(KEEP), 1000, 1, 0, 0) != 0 || ask(OF(KEEP), 1, 1, 0, 0) != -EPERM)
				_exit(2);
			munmap(at, 4096);
		}
		_exit(ask(OF(ROOM), 1000, 0, 0, 0) == 0 ? 0 : 3);
	}
	CHECK(status_of(pid) == 0);
}

/* Free pages of the machine, by the kernel's books. */
static uint32_t free_pages(void)
{
	return *(volatile uint32_t *)(0x7f8000000000 + 16);
}

/* Who gives pages and has none kept has no more of them than it may have of its own. */
static void pages_hoarded(void)
{
	enum { LIMIT = 2000, ALL = 6000 };
	int ends[2];
	char byte;
	CHECK(pipe(ends) == 0);
	uint32_t before = free_pages();
	pid_t pid = fork();
	if (pid == 0) {
		if (exos_limit(EXOS_LIMIT_PAGES, LIMIT))
			_exit(1);
		for (int done = 0; done < ALL; done += 100) {
			char *from = mmap(NULL, 100 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			for (int at = 0; from != MAP_FAILED && at < 100; at++)
				gives(from + at * 4096);
		}
		write(ends[1], "x", 1);
		for (;;)
			pause();
	}
	close(ends[1]);
	read(ends[0], &byte, 1);
	close(ends[0]);
	for (int tries = 0; tries < 5000 && free_pages() + LIMIT + 500 < before; tries++)
		usleep(1000);
	CHECK(free_pages() + LIMIT + 500 >= before);
	kill(pid, SIGKILL);
	CHECK(status_of(pid) > 0);
}

/* Slices of an environment, by the kernel's books. */
static uint32_t slices_of(pid_t pid)
{
	const volatile struct exos_process *record = exos_find(pid);
	return record ? *(volatile uint32_t *)(0x7f8000000000 + 2816 + 256 * record->environment + 52) : 0;
}

/* They come by the registry alone, and go: from who does not give one, by force. */
static void slices_are_counted(void)
{
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			continue;
	CHECK(pid > 0);
	while (slices_of(pid) != 1)
		usleep(100);
	CHECK(ask(OF(SLICE), (uint64_t)pid, 1, 0, 0) == 0 && ask(OF(SLICE), (uint64_t)pid, 1, 0, 0) == 0);
	while (slices_of(pid) != 3)
		usleep(100);
	for (uint32_t left = 3; left-- > 0;) {
		int64_t answer = ask(OF(SLICE), (uint64_t)pid, ~0ULL, 0, 0);
		if (answer)
			printf("the slice %u: %d\n", (unsigned)left, (int)answer);
		CHECK(answer == 0 && slices_of(pid) == left);
	}
	CHECK(ask(OF(SLICE), (uint64_t)pid, ~0ULL, 0, 0) == -EINVAL);
	CHECK(ask(OF(SLICE), (uint64_t)pid, 2, 0, 0) == -EINVAL);
	CHECK(call(TAKE_SLICE, 0, ~0ULL) == QUOTA);
	kill(pid, SIGKILL);
	int status = status_of(pid);
	CHECK(WIFSIGNALED(status));
}

static void processes_never_begun(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		for (int count = 0; count < 10; count++)
			if (ask(OF(CREATE), bad(), 64, bad(), bad()) != 0)
				_exit(1);
		_exit(0);
	}
	/* They go with who made them. */
	CHECK(status_of(pid) == 0);
	uint64_t words[5];
	int told;
	do {
		uint64_t fresh[5] = {OF(CREATE), 0x400000, 64, 0, 0};
		memcpy(words, fresh, sizeof words);
		usleep(1);
		told = exos_ask(words);
	} while (told != 0 || (int64_t)words[0] == -EBUSY);
	CHECK(words[0] == 0);
	pid = (pid_t)words[1];
	/* There is nothing in it: it ends at its first instruction. */
	CHECK(ask(OF(START), (uint64_t)pid, 0, 0, 0) == 0);
	/* It may have ended by now. */
	int64_t again = ask(OF(START), (uint64_t)pid, 0, 0, 0);
	CHECK(again == -EPERM || again == -ESRCH);
	int status = status_of(pid);
	CHECK(WIFSIGNALED(status));
	CHECK(ask(OF(REPLACE), 0, 64, 0, 0) == 0 && ask(OF(REPLACE), 0, 64, 0, 0) == 0);
}

/* Anything, from a process that may be hurt by it. */
static void anything(void)
{
	for (int round = 0; round < 20; round++) {
		uint64_t seed = any();
		pid_t pid = fork();
		if (pid == 0) {
			state = seed | 1;
			exos_limit(EXOS_LIMIT_PROCESSES, 8);
			exos_limit(EXOS_LIMIT_PAGES, 3000);
			for (int count = 0; count < 150; count++) {
				for (int at = 0; at < 8; at++)
					NUMBERS[at] = (uint32_t)bad();
				uint64_t operation = any() % 13 | (any() % 3) << 32;
				/* Ends of itself are for others. */
				if ((uint32_t)operation == EXIT || (uint32_t)operation == KILL || (uint32_t)operation == COMMIT)
					continue;
				ask(operation, bad(), bad(), bad(), bad());
			}
			_exit(0);
		}
		int status = status_of(pid);
		CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	}
	CHECK(exos_find(getpid()) != NULL);
}

/* The library's own memory, the context among it: the process harms itself. */
static void who_corrupts_itself(void)
{
	static const uintptr_t places[] = {0x7c0000000000, 0x7e0000000000, 0x7e0000008000, 0x7e0000130000, 0x7e0000140000};
	for (unsigned at = 0; at < sizeof places / sizeof *places; at++) {
		pid_t pid = fork();
		if (pid == 0) {
			volatile uint64_t *word = (volatile uint64_t *)places[at];
			for (int count = 0; count < 512; count++)
				word[count] = 0x5555555555555555;
			_exit(1);
		}
		CHECK(pid > 0);
		usleep(30000);
		kill(pid, SIGKILL);
		int status;
		CHECK(waitpid(pid, &status, 0) == pid);
	}
}

static void nothing_is_lost(void)
{
	uint32_t before = 0, after = 0;
	for (int round = 0; round < 3; round++) {
		before = after;
		for (int count = 0; count < 20; count++) {
			pid_t pid = fork();
			if (pid == 0) {
				char *heap = malloc(50000);
				for (int at = 0; at < 50000; at += 4096)
					heap[at] = 1;
				/* Made, and never begun. */
				ask(OF(CREATE), 0x400000, 64, 0, 0);
				if (count % 3 == 0)
					*(volatile int *)any() = 1;
				if (count % 3 == 1)
					for (;;)
						pause();
				_exit(0);
			}
			if (count % 3 == 1)
				kill(pid, SIGKILL);
			status_of(pid);
		}
		/* What was kept for them is free a little later. */
		for (int tries = 0; tries < 500 && free_pages() != before; tries++)
			usleep(1000);
		after = free_pages();
	}
	if (after != before)
		printf("free pages: %u, then %u\n", (unsigned)before, (unsigned)after);
	CHECK(after >= before);
}

int main(void)
{
	RUN(requests_of_nobody);
	RUN(requests_of_other_versions);
	RUN(pages_of_others);
	RUN(who_has_limits_stops_nothing);
	RUN(pages_twice);
	RUN(pages_hoarded);
	RUN(slices_are_counted);
	RUN(processes_never_begun);
	RUN(anything);
	RUN(who_corrupts_itself);
	RUN(nothing_is_lost);
	return failures != 0;
}
