/* Programs as nobody wants them, by their first argument. Each ends with a reason, and harms nobody else. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int crash(void)
{
	int *volatile nowhere = (int *)16;
	*nowhere = 1;
	return 0;
}

static int divide(void)
{
	volatile int ten = 10, zero = 0;
	return ten / zero;
}

/* Without an end, which the compiler must not see, or make a loop of it. */
__attribute__((noinline, noclone)) static int recurse(int depth)
{
	volatile char frame[256];
	frame[0] = (char)depth;
	return depth < 0 ? 0 : recurse(depth & 0xff) + frame[0];
}

/* All memory that it gets, touched. */
static int hog(void)
{
	unsigned long got = 0;
	char *block;
	while ((block = malloc(1 << 18))) {
		memset(block, 1, 1 << 18);
		got += 1 << 18;
	}
	printf("hog: no more memory after %lu MiB\n", got >> 20);
	return 0;
}

/* Processes until there are no more. */
static int bomb(void)
{
	int children = 0;
	pid_t pid;
	setpgid(0, 0);
	while ((pid = fork()) > 0)
		children++;
	if (pid == 0)
		for (;;)
			pause();
	printf("bomb: no more processes after %d\n", children);
	kill(0, SIGKILL);
	return 1;
}

/* Writes over everything that the library keeps in this process. */
static int corrupt(void)
{
	for (volatile uint64_t *word = (uint64_t *)0x7c0000000000; word; word++)
		*word = 0x5555555555555555;
	return 0;
}

static const struct {
	const char *name;
	int (*act)(void);
} acts[] = {
	{"crash", crash}, {"divide", divide}, {"hog", hog}, {"bomb", bomb}, {"corrupt", corrupt},
};

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";
	if (!strcmp(what, "recurse"))
		return recurse(0);
	for (size_t at = 0; at < sizeof acts / sizeof *acts; at++)
		if (!strcmp(what, acts[at].name))
			return acts[at].act();
	fputs("bad: bad crash|divide|recurse|hog|bomb|corrupt\n", stderr);
	return 2;
}
