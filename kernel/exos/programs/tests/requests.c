/* Requests at random to the root environment, by the library's way and by the kernel's own calls: words, mailboxes that change meanwhile,
   pages given and kept, processes made, held and never begun. A good process goes on beside them, and after each round the tree can have
   all its processes, pages and slices again. Where the archive has a file `long`, rounds are many. */
#include "check.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/process.h>
#include <exos/yield.h>

enum { CREATE = 1, START, REPLACE, COMMIT, KEEP, ROOM, LIMIT, EXIT, REAP, KILL, SLICE };
#define OF(operation) ((operation) | 1ULL << 32)
#define MAILBOX ((volatile uint64_t *)0x7e0000130000)
#define NUMBERS ((volatile uint32_t *)(0x7e0000130000 + 64))
#define CONTEXT ((volatile uint64_t *)0x7e0000000000)

enum { ROOT = 1, PROCESSES_AT_MOST = 8, PAGES_AT_MOST = 4000, SLICES_AT_MOST = 9 };

/* What the kernel's calls are numbered. */
enum {
	CALL_CAPABILITY = 8,
	CALL_ALLOCATE = 9,
	CALL_FREE,
	CALL_RENAME,
	CALL_GIVE,
	CALL_BREAK,
	CALL_TABLE,
	CALL_UNTABLE,
	CALL_MAP,
	CALL_UNMAP,
	CALL_DESTROY = 22,
	CALL_SET,
	CALL_QUOTA,
	CALL_TAKE_SLICE,
	CALL_FREE_SLICE,
	CALL_GIVE_SLICE,
	CALL_REVOKE,
	CALL_SUBMIT
};

static long kernel(uint64_t call, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(call), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "r9", "memory");
	return result;
}

/* Transfers as the kernel has them, beside the library. raw(call and environment, kind, words): 0: the processor came back at a begin;
   1: a transfer arrived, whose words are there now; below 0: refused. Meanwhile nothing is saved when a slice ends. */
long raw(uint64_t call, uint64_t kind, uint64_t words[5]);
void raw_begin(void), raw_notify(void), raw_synchronous(void), raw_asynchronous(void), raw_end(void);
/* So many stores to the mailbox at each begin while an answer is awaited; the library's entries. */
extern uint64_t raw_stores, raw_former[5];

__asm__(".text\n"
	"raw:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	mov %rdx, raw_words(%rip)\n"
	"	mov %rsp, raw_stack(%rip)\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %r9\n"
	"	mov %rdx, %rbx\n"
	"	mov (%rbx), %rdi\n	mov 8(%rbx), %rsi\n	mov 16(%rbx), %rdx\n	mov 24(%rbx), %r8\n	mov 32(%rbx), %r10\n"
	"	movl $1, raw_waits(%rip)\n"
	"	syscall\n"
	"raw_back:\n"
	"	movl $0, raw_waits(%rip)\n"
	"	mov raw_stack(%rip), %rsp\n"
	"	fninit\n"
	"	ldmxcsr raw_modes(%rip)\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n"
	"	ret\n"
	".macro either to, former\n"
	"	cmpl $0, raw_waits(%rip)\n"
	"	jne \\to\n"
	"	jmp *raw_former + 8 * \\former(%rip)\n"
	".endm\n"
	"raw_begin:\n"
	"	either begun, 0\n"
	"raw_end:\n"
	"	either ended, 1\n"
	"raw_notify:\n"
	"	either begun, 2\n"
	"raw_synchronous:\n"
	"	either arrived, 3\n"
	"raw_asynchronous:\n"
	"	either arrived, 4\n"
	"begun:\n"
	"	mov raw_stores(%rip), %rcx\n"
	"	movabs $0x7e0000130040, %rdx\n"
	"1:	test %rcx, %rcx\n"
	"	jz 2f\n"
	"	mov %rcx, %rax\n"
	"	and $7, %eax\n"
	"	incl (%rdx, %rax, 4)\n"
	"	dec %rcx\n"
	"	jmp 1b\n"
	"2:	xor %eax, %eax\n"
	"	jmp raw_back\n"
	"arrived:\n"
	"	mov raw_words(%rip), %rbx\n"
	"	mov %rdi, (%rbx)\n	mov %rsi, 8(%rbx)\n	mov %rdx, 16(%rbx)\n	mov %r8, 24(%rbx)\n	mov %r10, 32(%rbx)\n"
	"	mov $1, %eax\n"
	"	jmp raw_back\n"
	"ended:\n"
	"	mov $4, %eax\n"
	"	syscall\n"
	"	jmp ended\n"
	".data\n"
	".balign 8\n"
	"raw_words:	.quad 0\n"
	"raw_stack:	.quad 0\n"
	"raw_stores:	.quad 0\n"
	"raw_former:	.fill 5, 8, 0\n"
	"raw_waits:	.long 0\n"
	"raw_modes:	.long 0x1f80\n"
	".text\n");

/* From here on the entries are those of `raw`, which pass on what comes while it does not wait. */
static void install(void)
{
	static void (*const entries[5])(void) = {raw_begin, raw_end, raw_notify, raw_synchronous, raw_asynchronous};
	static const int places[5] = {0x140 / 8, 0x148 / 8, 0x150 / 8, 0x198 / 8, 0x1a0 / 8};

	for (int at = 0; at < 5; at++)
		raw_former[at] = CONTEXT[places[at]];
	for (int at = 0; at < 5; at++)
		if (raw_former[at])
			CONTEXT[places[at]] = (uint64_t)entries[at];
}

static uint64_t state = 1;

static uint64_t any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* What this process has: numbers of pages, of its children, capabilities. */
static uint64_t pages[16], pids[16], environments[16], capabilities[16];

#define ONE_OF(array) ((array)[any() % (sizeof(array) / sizeof *(array))])

/* Free pages of the machine, by the kernel's books. */
static uint32_t free_pages(void)
{
	return *(volatile uint32_t *)(0x7f8000000000 + 16);
}

static uint64_t somebody(void)
{
	const volatile struct exos_process *process = &exos_table()->processes[any() % EXOS_PROCESSES];

	switch (any() % 4) {
	case 0:
		return ONE_OF(pids);
	case 1:
		return (uint64_t)getpid();
	case 2:
		return (uint64_t)getppid();
	default:
		return process->pid ? process->pid : any() % 300;
	}
}

/* A word as somebody would choose it who wants harm. */
static uint64_t bad(void)
{
	static const uint64_t edges[] = {0, 1, 2, 3, 8, 31, 32, 64, 254, 255, 256, 1008, 1009, 4095, 4096, 0x400000, 0x7e0000000000,
		0x7e0000130000, 1ULL << 31, 1ULL << 32, 1ULL << 47, 1ULL << 63, ~0ULL};

	switch (any() % 6) {
	case 0:
		return any();
	case 1:
		return ONE_OF(pages);
	case 2:
		return somebody();
	case 3:
		return ONE_OF(capabilities);
	default:
		return ONE_OF(edges);
	}
}

/* A fresh page of its own, mapped or not, given to the root, to a child, to nobody. */
static void page(void)
{
	uint64_t *place = &ONE_OF(pages), at = 0x2000000000 + any() % 8 * 4096;
	/* Not to strangers: the kernel asks nobody whether he wants a page, and that would not be lost, but his. */
	uint64_t to = any() % 4 ? ROOT : ONE_OF(environments);

	switch (any() % 6) {
	case 0:
	case 1: {
		long number = kernel(CALL_ALLOCATE, ~0ULL, any() % 3, any() % 3, 0, 0);
		if (number < 0)
			break;
		*place = (uint64_t)number;
		if (any() % 4)
			kernel(CALL_MAP, at, *place << 12 | 2, 0, 0, 0);
		break;
	}
	case 2:
		kernel(CALL_GIVE, *place, to, 0, 0, 0);
		break;
	case 3:
		kernel(CALL_MAP, at, *place << 12 | (any() & 2), ONE_OF(capabilities), 0, 0);
		break;
	case 4:
		kernel(CALL_UNMAP, at, 0, 0, 0, 0);
		break;
	default:
		kernel(CALL_FREE, *place, 0, 0, 0, 0);
	}
}

/* A call of the kernel's with what is at hand. */
static void call(void)
{
	static const uint8_t calls[] = {CALL_CAPABILITY, CALL_ALLOCATE, CALL_RENAME, CALL_BREAK, CALL_TABLE, CALL_UNTABLE,
		CALL_MAP, CALL_UNMAP, CALL_DESTROY, CALL_QUOTA, CALL_TAKE_SLICE, CALL_FREE_SLICE, CALL_GIVE_SLICE, CALL_REVOKE, CALL_SUBMIT};
	uint64_t number = ONE_OF(calls), environment = ONE_OF(environments), capability = ONE_OF(capabilities);

	switch (number) {
	case CALL_TABLE:
		kernel(number, bad() & ~0xfffULL, any() % 4, ONE_OF(pages), ONE_OF(pages), environment);
		break;
	case CALL_UNTABLE:
		kernel(number, bad() & ~0xfffULL, any() % 4, environment | !environment, capability, 0);
		break;
	case CALL_MAP:
		kernel(number, bad() & ~0xfffULL, ONE_OF(pages) << 12 | (any() & 6), capability, environment | !environment, ONE_OF(capabilities));
		break;
	case CALL_UNMAP:
		kernel(number, bad() & ~0xfffULL, environment | !environment, capability, 0, 0);
		break;
	case CALL_DESTROY:
	case CALL_SUBMIT:
		kernel(number, environment | !environment, capability, 0, 0, 0);
		break;
	case CALL_REVOKE:
		kernel(number, environment | !environment, 1 + any() % 2, any() % 8, capability, 0);
		break;
	case CALL_TAKE_SLICE:
	case CALL_FREE_SLICE:
		kernel(number, any() % 2, any() % 66, 0, 0, 0);
		break;
	case CALL_GIVE_SLICE:
		kernel(number, any() % 2, any() % 64, any() % 2 ? ROOT : environment, 0, 0);
		break;
	default:
		kernel(number, ONE_OF(pages), any() % 2 ? ROOT : bad(), bad(), bad(), bad());
	}
}

static void ask(int beside)
{
	static const uint8_t likely[] = {CREATE, CREATE, START, REPLACE, KEEP, KEEP, KEEP, ROOM, LIMIT, REAP, KILL, SLICE, 0, 12};
	uint64_t operation = ONE_OF(likely), words[5] = {operation | (any() % 8 ? 1ULL : any()) << 32, bad(), bad(), bad(), bad()};
	long told;

	for (int at = 0; at < 8; at++)
		NUMBERS[at] = (uint32_t)(any() % 3 ? ONE_OF(pages) : bad());
	switch (operation) {
	case CREATE:
	case REPLACE:
		words[2] = any() % 4 ? any() % 200 : bad();
		break;
	case START:
	case REAP:
	case SLICE:
		words[1] = somebody();
		words[2] = any() % 2;
		break;
	case KILL:
		/* Not itself, and not all of its own, this one too. */
		do
			words[1] = somebody();
		while (words[1] == (uint64_t)getpid() || words[1] == 0);
		break;
	case KEEP:
		words[1] = any() % 8 ? any() % 9 : bad();
		words[2] = any() % 2;
		break;
	case LIMIT:
		words[1] = any() % 4;
		words[2] = any() % 16 ? 8 + any() % 4000 : bad();
	}
	if (beside) {
		/* Mostly asked as it is; now and then as an answer, a slice that comes back, a procedure's call. */
		uint64_t kind = any() % 4 ? 0 : any() % 24;
		told = raw((any() % 4 ? 5 : 6) | ROOT << 8, kind, words);
		for (int slices = 0; told == 0 && slices < 40; slices++)
			told = raw(4, 0, words);
		told = told == 1 ? 0 : -1;
	} else {
		told = exos_ask(words);
	}
	if (told != 0 || words[0] != 0)
		return;
	if (operation == CREATE || operation == REPLACE) {
		size_t at = any() % 16;
		pids[at] = words[1];
		environments[at] = words[2];
		capabilities[at] = words[3];
	}
	if (operation == KEEP)
		ONE_OF(capabilities) = words[1 + any() % 2];
}

static void attacker(uint64_t seed, int beside)
{
	state = seed;
	/* A tree of its own: whom it made it may end, but not who looks after it. */
	if (exos_limit(EXOS_LIMIT_PROCESSES, PROCESSES_AT_MOST - 3))
		_exit(1);
	for (int at = 0; at < 10; at++)
		any();
	if (beside) {
		uint64_t words[5] = {OF(SLICE), (uint64_t)getpid(), 1, 0, 0};
		exos_ask(words);
		install();
	}
	raw_stores = any() % 3 * 400;
	for (int step = 0; step < 400; step++) {
		uint64_t what = any() % 8;
		if (what < 4)
			ask(beside);
		else if (what < 7)
			page();
		else
			call();
	}
	_exit(0);
}

/* Goes on: computes, and asks what it may, until it is told that all is over. */
static volatile sig_atomic_t over;

static void tell(int number)
{
	(void)number;
	over = 1;
}

static void good(void)
{
	uint64_t sum = 0, rounds = 0;

	signal(SIGTERM, tell);
	while (!over) {
		uint64_t words[5] = {OF(ROOM), 0, 0, 0, 0}, now = 0;
		for (uint64_t at = 1; at <= 1000; at++)
			now += at * at;
		if (exos_ask(words) == 0 && (words[0] != 0 || words[1] == 0) && (int64_t)words[0] != -EBUSY)
			_exit(2);
		if (rounds++ && now != sum)
			_exit(3);
		sum = now;
		exos_yield();
	}
	_exit(rounds > 20 ? 0 : 4);
}

static int status_of(pid_t pid)
{
	int status = -1;
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static int64_t told(uint64_t operation, uint64_t a, uint64_t b, uint64_t words[5])
{
	for (int tries = 0; tries < 2000; tries++) {
		words[0] = OF(operation), words[1] = a, words[2] = b, words[3] = words[4] = 0;
		if (exos_ask(words) == 0 && (int64_t)words[0] != -EBUSY)
			return (int64_t)words[0];
		exos_yield();
	}
	return -EBUSY;
}

/* What the tree can have: processes, pages of one, slices of one. */
struct account {
	int processes, pages, slices;
};

static struct account measured(void)
{
	uint64_t words[5], made[PROCESSES_AT_MOST];
	struct account found = {0, 0, 0};

	while (found.processes < PROCESSES_AT_MOST && told(CREATE, 0x400000, 32, words) == 0)
		made[found.processes++] = words[1];
	for (int at = 0; at < found.processes; at++)
		told(KILL, made[at], SIGKILL, words);
	for (int step = 4096; step; step /= 2)
		if (told(CREATE, 0x400000, (uint64_t)(found.pages + step), words) == 0) {
			found.pages += step;
			told(KILL, words[1], SIGKILL, words);
		}
	if (told(CREATE, 0x400000, 32, words) == 0) {
		made[0] = words[1];
		while (found.slices < 100 && told(SLICE, made[0], 1, words) == 0)
			found.slices++;
		told(KILL, made[0], SIGKILL, words);
	}
	return found;
}

/* Ends all of this tree but the caller. */
static void clear(void)
{
	const volatile struct exos_table *table = exos_table();
	uint64_t words[5];

	for (int round = 0; round < 3; round++)
		for (int at = 0; at < EXOS_PROCESSES; at++) {
			uint32_t pid = table->processes[at].pid;
			/* Who is not of this tree, or below, is refused. */
			if (pid && pid != (uint32_t)getpid() && table->processes[at].state != EXOS_ENDED)
				told(KILL, pid, SIGKILL, words);
		}
	while (waitpid(-1, NULL, 0) > 0)
		continue;
}

static int rounds = 10;

static int same(struct account one, struct account other)
{
	int fewer = one.pages - other.pages;

	/* Some more or fewer pages are the head's and its children's together. */
	return one.processes == other.processes && one.slices == other.slices && -16 <= fewer && fewer <= 16;
}

/* A tree of attackers, round after round. */
static void tree(uint64_t seed)
{
	struct account before, after = {0, 0, 0};
	pid_t attackers[2];

	if (exos_limit(EXOS_LIMIT_PROCESSES, PROCESSES_AT_MOST) || exos_limit(EXOS_LIMIT_PAGES, PAGES_AT_MOST) ||
	    exos_limit(EXOS_LIMIT_SLICES, SLICES_AT_MOST))
		_exit(2);
	/* What it has in common with those that it has forked is kept, and counted, from the first on. */
	attackers[0] = fork();
	if (attackers[0] == 0)
		_exit(0);
	waitpid(attackers[0], NULL, 0);
	before = measured();
	for (int beside = 0; beside < 2; beside++) {
		for (int at = 0; at < 2; at++) {
			attackers[at] = fork();
			if (attackers[at] == 0)
				attacker(seed + (uint64_t)(at * 3 + beside), beside);
		}
		/* They end, or hang by what they have done to themselves. */
		for (int at = 0; at < 2; at++) {
			int looks = 0;
			while (attackers[at] > 0 && waitpid(attackers[at], NULL, WNOHANG) == 0 && looks++ < 3000)
				exos_yield();
		}
		clear();
		after.processes = -1;
		/* What was kept is free a little later. */
		for (int tries = 0; tries < 300 && !same(before, after); tries++) {
			exos_yield();
			after = measured();
		}
		if (!same(before, after)) {
			printf("seed %d, %d: processes %d, then %d; pages %d, then %d; slices %d, then %d\n", (int)seed, beside,
			       before.processes, after.processes, before.pages, after.pages, before.slices, after.slices);
			fflush(stdout);
			_exit(3);
		}
	}
	_exit(0);
}

static void accounts_stay_whole(void)
{
	uint32_t before, after = 0;
	pid_t other = fork();

	if (other == 0)
		good();
	before = free_pages();
	for (int round = 0; round < rounds; round++) {
		pid_t pid = fork();
		if (pid == 0)
			tree((uint64_t)round * 7919 + 1);
		int status = status_of(pid);
		if (status)
			printf("round %d: %#x\n", round, status);
		CHECK(status == 0);
		CHECK(exos_find(other) && exos_find(other)->state == EXOS_LIVES);
	}
	for (int tries = 0; tries < 500 && after < before; tries++) {
		exos_yield();
		after = free_pages();
	}
	if (after < before)
		printf("free pages: %u, then %u\n", (unsigned)before, (unsigned)after);
	CHECK(kill(other, SIGTERM) == 0);
	int status = status_of(other);
	if (status)
		printf("the good one: %#x\n", status);
	CHECK(status == 0);
	CHECK(after >= before);
}

int main(void)
{
	if (access("long", R_OK) == 0)
		rounds = 150;
	RUN(accounts_stay_whole);
	return failures != 0;
}
