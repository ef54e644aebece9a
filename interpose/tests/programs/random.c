/* random.c: makes system calls with numbers and words at random, in children that it starts. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *denied, *allowed;

static void opens(const char *path)
{
	int file = open(path, O_RDONLY);
	printf("%d\n", file < 0 ? -errno : 0);
	close(file);
}

static int leave_out(long number)
{
	/* What would do something to the machine, or to processes and objects of others, which the agent
	 * is not told to refuse; and what makes processes, or waits for the disk. */
	static const short all[] = {29,  30,  31,  41,  56,  57,  58,  62,  64,  65,  66,  67,  68,  69,  70, 71,
	                            103, 129, 133, 142, 144, 162, 200, 220, 234, 241, 259, 297, 306, 314, 424};
	for (unsigned at = 0; at < sizeof all / sizeof all[0]; at++)
		if (number == all[at])
			return 1;
	return 0;
}

static unsigned long state;

static unsigned long next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static char buffer[1 << 16];

static unsigned long word(void)
{
	static const char *const names[] = {"denied", "denies", "x", "y"};
	switch (next() % 8) {
	case 0: return next();
	case 1: return (unsigned long)buffer + next() % 4096;
	case 2: return (unsigned long)names[next() % 4];
	case 3: return (unsigned long)denied;
	case 4: return 1ul << next() % 64;
	case 5: return -(next() % 256);
	default: return next() % 32;
	}
}

static int calls_of_child;

static void random_calls(void)
{
	int null = open("/dev/null", O_RDWR);
	struct rlimit memory = {1ul << 30, 1ul << 30}, none = {0, 0};
	setrlimit(RLIMIT_AS, &memory);
	setrlimit(RLIMIT_CORE, &none);
	for (int at = 0; at < 3; at++)
		dup2(null, at);
	for (unsigned at = 0; at < sizeof buffer; at++)
		buffer[at] = next();
	/* Also where a call blocks or waits for good. */
	struct itimerval soon = {{0, 0}, {0, 300000}};
	signal(SIGALRM, SIG_DFL);
	setitimer(ITIMER_REAL, &soon, 0);
	for (int at = 0; at < calls_of_child; at++) {
		long number = next() % 480;
		if (!leave_out(number))
			syscall(number, word(), word(), word(), word(), word(), word());
	}
	_exit(0);
}

int main(int count, char **words)
{
	if (count < 6)
		return 2;
	denied = words[1];
	allowed = words[2];
	calls_of_child = atoi(words[4]);
	if (chdir(words[5]) != 0)
		return 3;
	for (int at = 0; at < atoi(words[3]); at++) {
		state = 88172645463325252ul + at;
		pid_t child = fork();
		if (child == 0) {
			setsid();
			random_calls();
		}
		/* A child may stop itself, or lose its alarm. */
		for (int wait = 0; waitpid(child, 0, WNOHANG) == 0; wait++) {
			usleep(10000);
			if (wait == 60)
				kill(child, SIGKILL);
		}
	}
	opens(denied);
	opens(allowed);
	return 0;
}
