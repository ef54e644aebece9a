/* sites.c: calls from text that is rewritten while it is used. Prints the same whether it is or not. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TIMES 64

/* Each is `long f(void)`, and makes getppid (110) or fails by what it returns. */
asm(".text\n"
    /* Jumps to the call, behind it, and from there to it again. */
    ".balign 8\n"
    "to_call: mov $110, %eax\n jmp 1f\n nop\n mov $110, %eax\n 1: syscall\n ret\n"
    ".balign 8\n"
    "behind: xor %ecx, %ecx\n mov %ecx, %r8d\n jmp 2f\n"
    "  1: mov $110, %eax\n syscall\n 2: inc %r8d\n cmp $3, %r8d\n jb 1b\n ret\n"
    ".balign 8\n"
    "again: mov $2, %r8d\n mov $110, %eax\n 1: syscall\n mov %rax, %r9\n mov $110, %eax\n dec %r8d\n jnz 1b\n"
    "  mov %r9, %rax\n ret\n"
    /* Instructions of two, three and more bytes before it. */
    ".balign 8\n"
    "two: mov $110, %edx\n mov %edx, %eax\n syscall\n cmp $-4095, %rax\n ret\n"
    ".balign 8\n"
    "three: mov $110, %eax\n mov %rdi, %r10\n syscall\n ret\n"
    ".balign 8\n"
    "four: sub $24, %rsp\n movq $110, 8(%rsp)\n mov $1, %eax\n lea 8(%rsp), %rdx\n mov (%rdx), %rax\n"
    "  lea (%rdi,%rsi), %r9\n syscall\n add $24, %rsp\n ret\n"
    ".balign 8\n"
    "five: mov $110, %eax\n mov 8(%rsp), %r9\n syscall\n ret\n"
    ".balign 8\n"
    "seven: mov $110, %rax\n syscall\n ret\n"
    /* One whose last bytes look like the other one. */
    ".balign 8\n"
    "other: mov $110, %eax\n mov $110, %r8d\n syscall\n ret\n"
    ".balign 8\n"
    "wide: mov $110, %eax\n movabs $0x6eb800000000, %r8\n syscall\n ret\n"
    /* Its operand is where it is. */
    ".balign 8\n"
    "here: mov which(%rip), %eax\n syscall\n ret\n which: .long 110\n"
    /* Two behind each other. */
    ".balign 8\n"
    "twice: xor %eax, %eax\n mov $-1, %edi\n mov $110, %eax\n syscall\n xor %eax, %eax\n syscall\n"
    "  mov $110, %eax\n syscall\n ret\n"
    /* Over the ends of words, lines and pages. */
    ".balign 4096\n .skip 4096 - 3, 0x90\n"
    "page: mov $110, %eax\n syscall\n ret\n"
    ".balign 4096\n .skip 4096 - 6, 0x90\n"
    "page_in_call: mov $110, %eax\n syscall\n ret\n"
    ".balign 64\n .skip 64 - 2, 0x90\n"
    "line: mov $110, %eax\n syscall\n ret\n"
    ".balign 8\n .skip 7, 0x90\n"
    "word: mov $110, %eax\n syscall\n ret\n");

#define EACH(do) \
	do(to_call) do(behind) do(again) do(two) do(three) do(four) do(five) do(seven) do(other) do(wide) do(here) \
	do(twice) do(page) do(page_in_call) do(line) do(word)
#define DECLARE(name) extern long name(void);
EACH(DECLARE)

static void shapes(void)
{
	int wrong = 0;
	long parent = getppid();
#define CHECK(name) \
	for (int i = 0; i < TIMES; i++) \
		if (name() != parent) { \
			wrong++; \
			printf("%s: wrong at call %d\n", #name, i); \
			break; \
		}
	EACH(CHECK)
	printf("shapes: %d wrong\n", wrong);
}

/* All registers, vectors and flags but those that calls change. */
struct all {
	uint64_t general[14], flags;
	unsigned char vectors[16][16];
};

/* rdi = what is put into registers, rsi = what was found; the number is in general[0]. */
void with_all(const struct all *given, struct all *found);
asm(".balign 8\n"
    "with_all: push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n push %rsi\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n movups 120+16*\\n(%rdi), %xmm\\n\n .endr\n"
    " mov 8(%rdi), %rbx\n mov 16(%rdi), %rbp\n mov 24(%rdi), %rdx\n mov 32(%rdi), %rsi\n mov 48(%rdi), %r8\n"
    " mov 56(%rdi), %r9\n mov 64(%rdi), %r10\n mov 80(%rdi), %r12\n mov 88(%rdi), %r13\n mov 96(%rdi), %r14\n"
    " mov 104(%rdi), %r15\n pushq 112(%rdi)\n mov 0(%rdi), %eax\n mov 40(%rdi), %rdi\n popfq\n"
    " mov %eax, %eax\n syscall\n"
    " pushfq\n cld\n pop %rcx\n mov (%rsp), %r11\n"
    " mov %rax, 0(%r11)\n mov %rbx, 8(%r11)\n mov %rbp, 16(%r11)\n mov %rdx, 24(%r11)\n mov %rsi, 32(%r11)\n"
    " mov %rdi, 40(%r11)\n mov %r8, 48(%r11)\n mov %r9, 56(%r11)\n mov %r10, 64(%r11)\n mov %r12, 80(%r11)\n"
    " mov %r13, 88(%r11)\n mov %r14, 96(%r11)\n mov %r15, 104(%r11)\n mov %rcx, 112(%r11)\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n movups %xmm\\n, 120+16*\\n(%r11)\n .endr\n"
    " pop %rsi\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n");

static void registers(void)
{
	/* Carry, parity, adjust, zero, sign, direction, overflow, and the one that is always set. */
	static const uint64_t flags[] = {0x202, 0xcd7, 0x246, 0x297, 0x602, 0xa03};
	int wrong = 0;
	for (int i = 0; i < TIMES; i++) {
		struct all given, found;
		for (unsigned j = 0; j < sizeof given; j++)
			((unsigned char *)&given)[j] = 13 * j + i;
		given.flags = flags[i % 6] | 0x200;
		given.general[0] = SYS_getppid;
		found = given;
		with_all(&given, &found);
		given.general[0] = getppid();
		wrong += memcmp(&given, &found, sizeof given) != 0;
	}
	printf("registers: %d wrong\n", wrong);
}

/* Fresh sites that many threads come to at once. */
#define SITES 200
asm(".balign 64\nfresh: .rept 200\n .balign 16\n nop\n nop\n nop\n mov $110, %eax\n syscall\n ret\n .endr\n");
extern char fresh[];

static pthread_barrier_t start;

static void *race(void *unused)
{
	long parent = getppid(), wrong = 0;
	(void)unused;
	for (int site = 0; site < SITES; site++) {
		long (*call)(void) = (long (*)(void))(fresh + 16 * site);
		pthread_barrier_wait(&start);
		for (int i = 0; i < 40; i++)
			wrong += call() != parent;
	}
	return (void *)wrong;
}

static void races(void)
{
	pthread_t all[4];
	long wrong = 0;
	pthread_barrier_init(&start, 0, 4);
	for (int i = 0; i < 4; i++)
		pthread_create(&all[i], 0, race, 0);
	for (int i = 0; i < 4; i++) {
		void *result;
		pthread_join(all[i], &result);
		wrong += (long)result;
	}
	printf("races: %ld wrong\n", wrong);
}

static __thread long mine = 42;
static volatile long counted, summed, mistaken;
static long parent;

static void counts(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	/* They interrupt each other. */
	__atomic_fetch_add(&counted, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&summed, info->si_value.sival_int, __ATOMIC_SEQ_CST);
	mistaken += mine != 42 || getppid() != parent;
}

static void *sends(void *unused)
{
	(void)unused;
	for (int i = 1; i <= 2000; i++) {
		union sigval value = {.sival_int = i};
		while (sigqueue(getpid(), SIGRTMIN + 1 + i % 3, value) != 0)
			sched_yield();
	}
	return 0;
}

static void ticks(int signal)
{
	(void)signal;
	mistaken += mine != 42 || getppid() != parent;
}

/* Signals that are queued come as often as they were sent, also while a call is looked at; each
 * call has its own result, and the timers' signals are in between. */
static void storm(int flags)
{
	struct sigaction action = {.sa_sigaction = counts, .sa_flags = SA_SIGINFO | SA_RESTART | flags};
	static char other[1 << 16];
	stack_t stack = {.ss_sp = other, .ss_size = sizeof other};
	sigaltstack(&stack, 0);
	counted = summed = mistaken = 0;
	parent = getppid();
	for (int i = 1; i <= 3; i++)
		sigaction(SIGRTMIN + i, &action, 0);
	action.sa_handler = ticks;
	action.sa_flags = SA_RESTART | flags;
	sigaction(SIGALRM, &action, 0);
	timer_t timer;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
	struct itimerspec often = {{0, 50000}, {0, 50000}}, never = {{0, 0}, {0, 0}};
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &often, 0);
	sigset_t queued, before;
	sigemptyset(&queued);
	for (int i = 1; i <= 3; i++)
		sigaddset(&queued, SIGRTMIN + i);
	sigaddset(&queued, SIGALRM);
	/* The sender inherits this mask. */
	pthread_sigmask(SIG_BLOCK, &queued, &before);
	pthread_t sender;
	pthread_create(&sender, 0, sends, 0);
	pthread_sigmask(SIG_SETMASK, &before, 0);
	long wrong = 0;
	while (counted < 2000)
		wrong += getppid() != parent;
	pthread_join(sender, 0);
	timer_settime(timer, 0, &never, 0);
	timer_delete(timer);
	sigset_t now;
	pthread_sigmask(SIG_BLOCK, 0, &now);
	printf("storm: %ld %ld wrong %ld %ld mask %d\n", counted, summed, wrong, mistaken,
	       memcmp(&before, &now, sizeof(long)));
}

/* A signal that is not queued is not lost, wherever the thread is, nor where its handler is called once. */
static volatile int once, installed = -1;

static void calls_once(int signal)
{
	(void)signal;
	once++;
}

static void *sends_once(void *whom)
{
	for (int i = 0; i < 100; i++) {
		while (installed != i)
			sched_yield();
		pthread_kill(*(pthread_t *)whom, SIGUSR2);
	}
	return 0;
}

static void one_by_one(int flags)
{
	struct sigaction action = {.sa_handler = calls_once, .sa_flags = flags}, now;
	pthread_t sender, self = pthread_self();
	int last = -1;
	once = 0;
	installed = -1;
	sigset_t block, before;
	sigemptyset(&block);
	sigaddset(&block, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &block, &before);
	pthread_create(&sender, 0, sends_once, &self);
	while (once < 100) {
		if (once != last) {
			last = once;
			sigaction(SIGUSR2, &action, 0);
			installed = once;
		}
		pthread_sigmask(SIG_SETMASK, &before, 0);
		for (int i = 0; i < 20 && once == last; i++)
			getppid();
		pthread_sigmask(SIG_BLOCK, &block, 0);
	}
	pthread_join(sender, 0);
	pthread_sigmask(SIG_SETMASK, &before, 0);
	sigaction(SIGUSR2, 0, &now);
	printf("one by one: %d, then %d %x\n", once, now.sa_handler == calls_once, now.sa_flags & (SA_SIGINFO | SA_RESETHAND));
}

/* Children of all kinds, while others call. */
static volatile int ended;

static void *calls(void *unused)
{
	long wrong = 0;
	(void)unused;
	while (!ended)
		wrong += getppid() != parent;
	return (void *)wrong;
}

static void children(void)
{
	pthread_t other;
	void *wrong;
	long failed = 0;
	parent = getppid();
	pthread_create(&other, 0, calls, 0);
	for (int i = 0; i < 30; i++) {
		int status = -1;
		pid_t self = getpid(), child = i % 2 ? fork() : vfork();
		if (child == 0) {
			for (int j = 0; j < 10; j++)
				if (getppid() != self)
					_exit(1);
			_exit(0);
		}
		waitpid(child, &status, 0);
		failed += status != 0;
	}
	ended = 1;
	pthread_join(other, &wrong);
	printf("children: %ld %ld wrong\n", failed, (long)wrong);
}

/* Text that goes and comes back otherwise. */
static void replaced(const char *path)
{
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0700), wrong = 0;
	unsigned char page[4096];
	for (int round = 0; round < 6; round++) {
		memset(page, 0x90, sizeof page);
		unsigned char code[] = {0xb8, round % 2 ? 110 : 39, 0, 0, 0, 0x0f, 0x05, 0xc3};
		memcpy(page + 1024, code, sizeof code);
		if (pwrite(file, page, sizeof page, 0) != sizeof page)
			exit(2);
		char *text = mmap((void *)0x500000000, sizeof page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0);
		for (int i = 0; i < 20; i++)
			wrong += ((long (*)(void))(text + 1024))() != (round % 2 ? getppid() : getpid());
		munmap(text, sizeof page);
	}
	close(file);
	unlink(path);
	printf("replaced: %d wrong\n", wrong);
}

int main(int count, char **words)
{
	setvbuf(stdout, 0, _IONBF, 0);
	alarm(60);
	shapes();
	registers();
	if (count > 1)
		replaced(words[1]);
	children();
	races();
	storm(0);
	storm(SA_ONSTACK);
	one_by_one(0);
	one_by_one(SA_RESETHAND);
	return 0;
}
