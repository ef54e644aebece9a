/* Memory of every kind in parent, child and grandchild: what one stores no other sees, but in memory that is shared. */
#include "check.h"

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/memory.h>
#include <exos/process.h>
#include <exos/shared.h>

#define PAGE EXOS_PAGE

static volatile char data[3 * PAGE] __attribute__((aligned(PAGE))) = { 1, 2, 3 };
static volatile char zeros[3 * PAGE] __attribute__((aligned(PAGE)));
static _Thread_local volatile char threads_own = 1;

enum { DATA, ZEROS, UNTOUCHED, HEAP, STACK, DEEP, MAPPED, ONE, OTHER, FIXED, OWN, KINDS };
enum { SHARED = KINDS, SEGMENT, ALL };

/* A place in each kind of memory. */
static volatile char *place[ALL];
/* Turns, in memory that is shared. */
static volatile int *turn;

static void wait_for(int wanted)
{
	while (*turn != wanted)
		sched_yield();
}

static void store(char value)
{
	for (int kind = 0; kind < ALL; kind++)
		if (kind != OTHER)
			*place[kind] = value;
}

/* A kind of memory that has not this value, or ALL. ONE and OTHER are one page. */
static int lacks(char value, char shared)
{
	for (int kind = 0; kind < ALL; kind++)
		if (*place[kind] != (kind < KINDS ? value : shared))
			return kind;
	return ALL;
}

static int status_of(pid_t pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static void make_places(volatile char *stack, volatile char *deep)
{
	int all = PROT_READ | PROT_WRITE, flags = MAP_ANONYMOUS;
	char *segment, *mapped, *file;
	struct exos_shared words;

	mapped = mmap(NULL, 3 * PAGE, all, flags | MAP_PRIVATE, -1, 0);
	turn = mmap(NULL, PAGE, all, flags | MAP_SHARED, -1, 0);
	segment = exos_shared_create(PAGE, &words);
	file = mmap((void *)0x500000000000, PAGE, all, flags | MAP_PRIVATE | MAP_FIXED, -1, 0);
	CHECK(mapped != MAP_FAILED && (void *)turn != MAP_FAILED && segment && file != MAP_FAILED);
	place[DATA] = data + 1;
	place[ZEROS] = zeros + PAGE;
	place[UNTOUCHED] = zeros + 2 * PAGE + 5;
	place[HEAP] = (volatile char *)malloc(5 * PAGE) + 3 * PAGE;
	place[STACK] = stack;
	place[DEEP] = deep;
	place[MAPPED] = mapped;
	place[ONE] = mapped + 2 * PAGE;
	*place[ONE] = 0;
	place[OTHER] = exos_alias((void *)place[ONE], PAGE, all);
	place[FIXED] = file;
	place[OWN] = &threads_own;
	place[SHARED] = (volatile char *)turn + 100;
	place[SEGMENT] = segment;
	CHECK(place[OTHER] != NULL);
}

/* Each stores in turn, and looks whether it has what it stored itself. */
static void turns(void)
{
	store(10);
	CHECK(lacks(10, 10) == ALL);
	*turn = 0;
	pid_t pid = fork();
	if (pid == 0) {
		if (lacks(10, 10) != ALL)
			_exit(1);
		store(20);
		if (lacks(20, 20) != ALL)
			_exit(2);
		*turn = 1;
		wait_for(2);
		if (lacks(20, 30) != ALL)
			_exit(3 + lacks(20, 30));
		/* One more, of what is a copy itself. */
		pid = fork();
		if (pid == 0) {
			if (lacks(20, 30) != ALL)
				_exit(1);
			store(40);
			_exit(lacks(40, 40) == ALL ? 0 : 2);
		}
		int status = status_of(pid);
		if (status != 0 || lacks(20, 40) != ALL)
			_exit(60 + lacks(20, 40));
		*place[OTHER] = 50;
		_exit(*place[ONE] == 50 ? 0 : 50);
	}
	CHECK(pid > 0);
	wait_for(1);
	CHECK(lacks(10, 20) == ALL);
	store(30);
	CHECK(lacks(30, 30) == ALL);
	*turn = 2;
	int status = status_of(pid);
	if (status)
		printf("the child's status is %#x\n", (unsigned)status);
	CHECK(status == 0 && lacks(30, 40) == ALL);
	*place[OTHER] = 31;
	CHECK(*place[ONE] == 31 && *place[OTHER] == 31);
}

/* Aliases: both are one page in both, whoever stores first and where, hidden or not. */
static void aliases(void)
{
	for (int round = 0; round < 8; round++) {
		volatile char *one = place[ONE], *other = place[OTHER];
		int hides = round & 1, childs = round & 2, first = round & 4;
		*one = 1;
		CHECK(*other == 1);
		if (hides)
			CHECK(exos_protect((void *)other, PROT_NONE) == 0);
		pid_t pid = fork();
		if (pid == 0 || !childs) {
			if (first || hides)
				*one = 7;
			else
				*other = 7;
			if (hides && exos_protect((void *)other, PROT_READ | PROT_WRITE))
				_exit(1);
			if (*one != 7 || *other != 7)
				_exit(2);
			*other = 8;
			if (*one != 8)
				_exit(3);
			if (pid == 0)
				_exit(0);
		}
		CHECK(status_of(pid) == 0);
		CHECK(exos_protect((void *)other, PROT_READ | PROT_WRITE) == 0);
		CHECK(*one == (childs ? 1 : 8) && *other == *one);
		*one = 9;
		CHECK(*other == 9);
	}
}

static void anothers_page(void)
{
	struct exos_shared words;
	char *segment = exos_shared_create(PAGE, &words), *mapped;
	CHECK(segment != NULL);
	segment[0] = 3;
	pid_t pid = fork();
	if (pid == 0) {
		/* Without the capability, with another one, to be written with one to read. */
		struct exos_shared reader;
		long number = exos_page_number((void *)turn);
		if (exos_map_page((long)words.page, 0, PROT_READ) != NULL)
			_exit(1);
		if (number > 0 && exos_map_page(number, words.capability, PROT_READ) != NULL)
			_exit(2);
		if (exos_shared_reader(segment, &reader))
			_exit(3);
		if (exos_map_page((long)words.page, reader.capability, PROT_READ | PROT_WRITE) != NULL)
			_exit(4);
		mapped = exos_map_page((long)words.page, words.capability, PROT_READ | PROT_WRITE);
		if (!mapped)
			_exit(5);
		/* What the page has: the number of the segment's. A copy of this process has it, too. */
		uint32_t has = *(volatile uint32_t *)mapped;
		pid = fork();
		if (pid == 0)
			_exit(*(volatile uint32_t *)mapped == has ? 0 : 1);
		_exit(status_of(pid) == 0 && has != 0 && munmap(mapped, PAGE) == 0 ? 0 : 6);
	}
	int status = status_of(pid);
	if (status)
		printf("the child's status is %#x\n", (unsigned)status);
	CHECK(status == 0);
	CHECK(exos_shared_detach(segment) == 0);
}

static int deep(int frames, volatile char *above)
{
	volatile char here[2000];

	here[0] = (char)frames;
	if (frames == 0) {
		pid_t pid = fork();
		if (pid == 0) {
			above[0]++;
			_exit(above[0] == 2 ? 0 : 1);
		}
		return status_of(pid) == 0 && above[0] == 1;
	}
	int well = deep(frames - 1, here);
	return well && here[0] == (char)frames;
}

/* Some KiB are left of 8 MiB, for fork itself. */
static void near_the_end_of_the_stack(void)
{
	volatile char here = 0;

	pid_t pid = fork();
	if (pid == 0)
		_exit(deep(((8 << 20) - 48 * 1024) / 2100, &here) ? 0 : 1);
	CHECK(status_of(pid) == 0 && here == 0);
	/* What is too much ends that process, in the one that forks or in its copy. */
	pid = fork();
	if (pid == 0)
		_exit(deep((8 << 20) / 1000, &here) ? 0 : 1);
	int status = status_of(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static volatile char stored_to_first[2 * PAGE] __attribute__((aligned(PAGE))) = { 1 };
static volatile int told;

static EXOS_HANDLER int counts(struct exos_fault *fault, void *argument)
{
	(void)fault, (void)argument;
	told++;
	return 0;
}

/* Pages that the library copies are no affair of a program's handler. Nobody has forked yet. */
static void handlers_hear_of_no_copies(void)
{
	exos_on_fault(counts, NULL);
	stored_to_first[0]++;
	CHECK(stored_to_first[0] == 2 && stored_to_first[1] == 0 && told == 0);
	stored_to_first[PAGE] = 7;
	CHECK(stored_to_first[PAGE] == 7 && told == 0);
	exos_on_fault(NULL, NULL);
}

static volatile int forked;

static void forks(int number)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(number == SIGUSR1 ? 4 : 5);
	forked = status_of(pid);
}

static void in_a_handler(void)
{
	struct sigaction action = { .sa_handler = forks };
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	for (int round = 0; round < 5; round++) {
		forked = -1;
		CHECK(raise(SIGUSR1) == 0);
		CHECK(WIFEXITED(forked) && WEXITSTATUS(forked) == 4);
	}
	/* The copy goes on behind the handler, too. */
	pid_t pid = fork();
	if (pid == 0) {
		forked = -1;
		raise(SIGUSR1);
		_exit(WEXITSTATUS(forked) == 4 ? 0 : 1);
	}
	CHECK(status_of(pid) == 0);
	signal(SIGUSR1, SIG_DFL);
}

/* Free pages of the machine, by the kernel's books. */
static uint32_t free_pages(void)
{
	return *(volatile uint32_t *)(0x7f8000000000 + 16);
}

/* Waits until at least so many are free again. */
static uint32_t settles(uint32_t wanted)
{
	for (int tries = 0; tries < 300 && free_pages() < wanted; tries++)
		usleep(1000);
	return free_pages();
}

/* Forks again and again where a tree may have so many pages beyond two processes of this size. */
static int forks_within(int more)
{
	enum { COUNT = 90 };
	int room = exos_room(0), forked = 0;
	char *memory = mmap(NULL, COUNT * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room < 0 || memory == MAP_FAILED)
		return 2;
	for (int page = 0; page < COUNT; page++)
		memory[page * PAGE] = (char)page;
	room = exos_room(0);
	if (exos_limit(EXOS_LIMIT_PAGES, 2 * room + more))
		return 3;
	for (int round = 0; round < 4; round++) {
		pid_t pid = fork();
		if (pid == 0) {
			for (int page = 0; page < COUNT; page++)
				if (memory[page * PAGE] != (char)(page + round))
					_exit(1);
			_exit(0);
		}
		if (pid < 0 && errno != ENOMEM)
			return 4;
		if (pid > 0 && status_of(pid) != 0)
			return 5;
		forked += pid > 0;
		for (int page = 0; page < COUNT; page++) {
			if (memory[page * PAGE] != (char)(page + round))
				return 6;
			memory[page * PAGE]++;
		}
	}
	return forked == 0 ? 10 : forked == 4 ? 11 : 12;
}

static void without_memory(void)
{
	int never = 0, always = 0;
	uint32_t before = 0;
	for (int round = 0; round < 100; round++) {
		/* From too few for a process, over some of what it has in common, to enough. */
		pid_t pid = fork();
		if (pid == 0)
			_exit(forks_within(round * 6 - 60));
		int status = status_of(pid), said = WEXITSTATUS(status);
		if (!WIFEXITED(status) || said < 10)
			printf("%d pages more: status %#x\n", round * 6 - 60, (unsigned)status);
		CHECK(WIFEXITED(status) && said >= 10);
		never += said == 10;
		always += said == 11;
		if (round == 1)
			before = settles(~0u);
	}
	CHECK(never >= 10 && always >= 10);
	CHECK(settles(before) >= before);
}

__attribute__((noinline)) static void below(volatile char *stack)
{
	volatile char here[5 * PAGE];

	here[0] = 0;
	make_places(stack, here + PAGE);
	if (failures)
		return;
	RUN(turns);
	RUN(turns);
	RUN(aliases);
}

int main(void)
{
	volatile char stack = 0;

	RUN(handlers_hear_of_no_copies);
	below(&stack);
	RUN(anothers_page);
	RUN(near_the_end_of_the_stack);
	RUN(in_a_handler);
	RUN(without_memory);
	return failures != 0;
}
