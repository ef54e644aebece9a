/* probe.c: prints the same whether somebody sees its calls or not. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;
static __thread long mine;

static void *add(void *of)
{
	for (int i = 0; i < 100; i++) {
		mine += (long)of;
		syscall(SYS_getppid);
		if (i % 10 == 0)
			sched_yield();
	}
	pthread_mutex_lock(&lock);
	sum += mine;
	pthread_mutex_unlock(&lock);
	return of;
}

static void threads(void)
{
	pthread_t all[16];
	long joined = 0;
	for (int round = 0; round < 4; round++) {
		for (long i = 0; i < 16; i++)
			if (pthread_create(&all[i], 0, add, (void *)i))
				exit(2);
		for (int i = 0; i < 16; i++) {
			void *result;
			pthread_join(all[i], &result);
			joined += (long)result;
		}
	}
	printf("threads: %ld %ld\n", sum, joined);
}

static int status_of(pid_t child)
{
	int status;
	if (waitpid(child, &status, 0) != child)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void children(void)
{
	static volatile int shared;
	pid_t child = fork();
	if (child == 0) {
		pthread_t one;
		pthread_create(&one, 0, add, (void *)1);
		pthread_join(one, 0);
		_exit(getpid() == syscall(SYS_gettid) ? 5 : 6);
	}
	printf("fork: %d\n", status_of(child));
	child = vfork();
	if (child == 0) {
		shared = 7;
		syscall(SYS_getppid);
		_exit(8);
	}
	printf("vfork: %d %d\n", status_of(child), shared);
	char *words[] = {"sh", "-c", "exit 9", 0};
	if (posix_spawn(&child, "/bin/sh", 0, 0, words, environ))
		exit(2);
	printf("spawn: %d\n", status_of(child));
	int error = posix_spawn(&child, "/nonesuch", 0, 0, words, environ);
	printf("spawn of nothing: %d\n", error);
	child = vfork();
	if (child == 0) {
		execl("/nonesuch", "x", (char *)0);
		execl("/bin/sh", "sh", "-c", "kill -9 $$", (char *)0);
		_exit(1);
	}
	printf("vfork and exec: %d\n", status_of(child));
	child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child == 0)
		_exit(10);
	printf("clone: %d\n", status_of(child));
	/* A child with a stack of its own, and a copy of the memory. */
	char *stack = malloc(65536);
	child = clone((int (*)(void *))abs, stack + 65536, SIGCHLD, (void *)11);
	printf("clone with a stack: %d\n", status_of(child));
	free(stack);
}

static volatile sig_atomic_t came, depth;
static sigjmp_buf back;

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)context;
	came += signal == SIGUSR1 ? 1 : 100;
	depth = info->si_code == SI_TKILL || info->si_code == SI_USER;
	syscall(SYS_getppid);
}

static void jumps(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

static void *interrupts(void *whom)
{
	usleep(30000);
	pthread_kill(*(pthread_t *)whom, SIGUSR1);
	return 0;
}

static void signals(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO}, old;
	sigfillset(&action.sa_mask);
	sigaction(SIGUSR1, &action, 0);
	sigaction(SIGUSR1, 0, &old);
	printf("handler: %d %d\n", old.sa_sigaction == handler, sigismember(&old.sa_mask, SIGUSR2));
	raise(SIGUSR1);
	printf("raised: %d %d\n", (int)came, (int)depth);
	sigset_t all, before, now;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	raise(SIGUSR1);
	syscall(SYS_getppid);
	printf("blocked: %d\n", (int)came);
	sigpending(&now);
	printf("pending: %d\n", sigismember(&now, SIGUSR1));
	sigprocmask(SIG_SETMASK, &before, 0);
	printf("taken: %d\n", (int)came);
	/* Waits with a mask that lets one in; the handler's own calls are seen, too. */
	sigprocmask(SIG_BLOCK, &all, 0);
	raise(SIGUSR1);
	sigset_t but = all;
	sigdelset(&but, SIGUSR1);
	sigsuspend(&but);
	printf("suspended: %d %d\n", (int)came, errno);
	raise(SIGUSR1);
	struct timespec none = {0, 0};
	int result = ppoll(0, 0, &none, &but);
	raise(SIGUSR1);
	int other = pselect(0, 0, 0, 0, &none, &but);
	sigprocmask(SIG_SETMASK, &before, 0);
	printf("polled: %d %d %d\n", result < 0 ? errno : result, other < 0 ? errno : other, (int)came);
	/* A call that waits is interrupted, or goes on. */
	pthread_t self = pthread_self(), thread;
	int ends[2];
	char byte;
	if (pipe(ends))
		exit(2);
	pthread_create(&thread, 0, interrupts, &self);
	long got = read(ends[0], &byte, 1);
	printf("interrupted: %ld %d\n", got, got < 0 ? errno : 0);
	pthread_join(thread, 0);
	action.sa_flags |= SA_RESTART;
	sigaction(SIGUSR1, &action, 0);
	/* A signal for the process is any thread's that does not block it: not the other one's. */
	sigset_t alarms;
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarms, 0);
	pthread_create(&thread, 0, interrupts, &self);
	sigprocmask(SIG_UNBLOCK, &alarms, 0);
	struct itimerval soon = {{0, 0}, {0, 90000}};
	signal(SIGALRM, jumps);
	setitimer(ITIMER_REAL, &soon, 0);
	if (sigsetjmp(back, 1) == 0) {
		got = read(ends[0], &byte, 1);
		printf("came back: %ld\n", got);
	}
	pthread_join(thread, 0);
	printf("restarted: %d\n", (int)came);
	/* On a stack of its own. */
	static char stack[65536];
	stack_t other_stack = {.ss_sp = stack, .ss_size = sizeof stack};
	sigaltstack(&other_stack, 0);
	action.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigaction(SIGUSR2, &action, 0);
	raise(SIGUSR2);
	printf("other stack: %d\n", (int)came);
	pid_t child = fork();
	if (child == 0) {
		raise(SIGUSR2);
		signal(SIGSEGV, SIG_DFL);
		*(volatile int *)8 = 0;
	}
	printf("ended by: %d\n", status_of(child));
}

/* A call in text that did not exist when the program began. */
static void made(void)
{
	unsigned char code[] = {0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3};
	unsigned char *text = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(text, code, sizeof code);
	mprotect(text, 4096, PROT_READ | PROT_EXEC);
	int ok = 0;
	for (int i = 0; i < 10; i++)
		ok += ((long (*)(void))text)() == getpid();
	printf("made: %d\n", ok);
}

/* All registers but three are as they were. */
static void registers(void)
{
	register uint64_t rbx asm("rbx") = 1, r12 asm("r12") = 2, r8 asm("r8") = 3, r9 asm("r9") = 4;
	register uint64_t r10 asm("r10") = 5;
	uint64_t rdi = 6, rsi = 7, rdx = 8, rax = SYS_getppid;
	double x = 1.5, y;
	asm volatile("movsd %[x], %%xmm5\n syscall\n movsd %%xmm5, %[y]"
	             : "+a"(rax), "+D"(rdi), "+S"(rsi), "+d"(rdx), "+r"(rbx), "+r"(r12), "+r"(r8), "+r"(r9),
	               "+r"(r10), [y] "=m"(y)
	             : [x] "m"(x)
	             : "rcx", "r11", "memory", "xmm5");
	printf("registers: %d %lu %lu %lu %lu %lu %lu %lu %lu %g\n", rax == (uint64_t)getppid(), rbx, r12, r8, r9,
	       r10, rdi, rsi, rdx, y);
}

static void memory(void)
{
	void *end = sbrk(0);
	char *got = sbrk(100000);
	memset(got, 1, 100000);
	printf("heap: %d %d\n", got == (char *)end, sbrk(-100000) == got + 100000);
	printf("bad addresses: %ld", syscall(SYS_read, 0, (void *)8, 1) < 0 ? 0L : 1L);
	printf(" %ld", syscall(SYS_rt_sigaction, SIGUSR1, (void *)8, 0, 8));
	printf(" %d", errno);
	printf(" %ld %d\n", syscall(SYS_rt_sigprocmask, SIG_BLOCK, (void *)8, 0, 8), errno);
	printf("errors: %ld", syscall(SYS_execve, (void *)8, 0, 0));
	printf(" %d", errno);
	printf(" %d", open("/proc/self/exe", O_RDONLY) >= 0);
	printf(" %ld %d\n", syscall(9999), errno);
}

/* From one place, which is rewritten meanwhile: a path that ends with its page, none, and the link
 * to this file. */
static void paths(void)
{
	char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(page + 4096, 4096);
	char *last = strcpy(page + 4094, "/");
	const char *all[] = {last, (const char *)8, "/proc/self/exe", "/nonesuch", "/dev/null"};
	for (int round = 0; round < 5; round++) {
		for (unsigned at = 0; at < sizeof all / sizeof *all; at++) {
			char start[4] = "", link[300] = "";
			int file = open(all[at], O_RDONLY);
			int number = file < 0 ? errno : 0;
			long had = read(file, start, 4);
			long length = readlink(all[at], link, sizeof link - 1);
			printf("%d %ld %d %d ", number, had, start[1] == 'E', length < 0 ? errno : 0);
			printf("%s\n", length < 0 ? "" : strrchr(link, '/'));
			close(file);
		}
	}
	munmap(page, 4096);
}

static long call(long number, long a, long b, long c)
{
	long result;
	asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static void refused(void)
{
	int result;
	asm volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
	printf("int 0x80: %d\n", result);
	printf("x32: %ld\n", call(0x40000000 | 39, 0, 0, 0));
	printf("io_uring_setup: %ld\n", call(425, 4, 0, 0));
	printf("set gs: %ld\n", call(SYS_arch_prctl, 0x1001, 0, 0));
	printf("trace: %ld\n", call(SYS_ptrace, 0, 0, 0));
	printf("undispatch: %ld\n", call(SYS_prctl, 59, 0, 0));
}

int main(int count, char **words)
{
	setvbuf(stdout, 0, _IONBF, 0);
	(void)words;
	if (count > 1) {
		refused();
		return 0;
	}
	threads();
	children();
	signals();
	made();
	registers();
	memory();
	paths();
	return 0;
}
