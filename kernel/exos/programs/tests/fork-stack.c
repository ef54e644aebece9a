/* `fork` at every depth of the stack: the library's own frames below the caller's begin new pages of
   it, which are copies of others' or not there yet. */
#include "check.h"

#include <alloca.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, STEP = 16 };

/* Has pages below be there. */
static __attribute__((noinline)) int touch(size_t bytes)
{
	volatile char *below = alloca(bytes);
	for (size_t at = 0; at < bytes; at += 64)
		below[at] = (char)at;
	return below[bytes - 64];
}

static int ends_well(pid_t pid)
{
	int status = -1;
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* From a frame so far below its caller's: a copy that uses the stack further down. */
static __attribute__((noinline)) int copy_at(size_t depth)
{
	volatile char *place = alloca(depth);
	place[0] = 1;
	pid_t pid = fork();
	if (pid == 0) {
		touch(5 * PAGE);
		_exit(0);
	}
	return ends_well(pid);
}

static void every_depth(void)
{
	/* What a copy gets of a pipe takes the library further down. */
	int ends[2];
	CHECK(pipe(ends) == 0);
	for (size_t depth = STEP; depth <= PAGE + STEP; depth += STEP) {
		touch(5 * PAGE);
		/* A copy has these pages in common with this process, and its own copy from it. */
		pid_t pid = fork();
		if (pid == 0)
			_exit(!copy_at(depth));
		int well = ends_well(pid) && copy_at(depth);
		if (!well)
			printf("at %zu\n", depth);
		CHECK(well);
	}
}

int main(void)
{
	RUN(every_depth);
	return failures != 0;
}
