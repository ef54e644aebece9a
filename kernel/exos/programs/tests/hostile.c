/* Peers that write nonsense into what they share, that end in the middle, and processes that ask for what is not theirs: others get
   errors, or bytes that mean nothing, and go on. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/pipe.h>

static int failures;

static void check(const char *name, int holds, const char *why)
{
	if (holds)
		printf("ok %s\n", name);
	else
		printf("FAILED %s: %s\n", name, why), failures++;
}

static uint64_t state = 7;

static uint64_t any(void)
{
	static const uint64_t edges[] = { 0, 1, 7, 8, 16384, 16385, 1ull << 32, 1ull << 63, ~0ull };

	state = state * 6364136223846793005ull + 1;
	if (state >> 62)
		return edges[(state >> 40) % (sizeof edges / sizeof *edges)];
	return state >> 8;
}

/* Counts of the ring, and who waits; not its locks, which name who is waited for. */
static void scribble(struct exos_ring *ring, int times)
{
	volatile uint64_t *words[] = { &ring->head, &ring->tail, &ring->reader, &ring->writer };

	for (int k = 0; k < times; k++) {
		*words[k % 4] = any();
		if (k % 16 == 0)
			sleep(0);
	}
}

static volatile sig_atomic_t late;

static void ring_bell(int number)
{
	(void)number;
	late = 1;
}

/* Reads and writes while a child with the same pipe writes nonsense beside it; around the buffer nothing changes. */
static void scribbled(void)
{
	struct sigaction action = { .sa_handler = ring_bell };
	struct exos_pipe ends[2];
	static char bytes[3 * 4096];
	int sane = 1, status = 0;
	pid_t child;

	sigaction(SIGALRM, &action, NULL);
	for (int round = 0; round < 20; round++) {
		if (exos_pipe_create(ends) != 0) {
			check("scribbled.create", 0, strerror(errno));
			return;
		}
		state = (uint64_t)round * 77 + 1;
		child = fork();
		if (child == 0) {
			exos_pipe_close(&ends[0]);
			scribble(ends[1].ring, 400);
			_exit(7);
		}
		exos_pipe_close(&ends[1]);
		memset(bytes, 0x5a, sizeof bytes);
		/* The child's end ends this, if its last words don't promise more than there is to read in some time. */
		for (int k = 0; k < 5000; k++)
			if (exos_pipe_read(&ends[0], (uint64_t *)(void *)(bytes + 4096)) != 0)
				break;
		for (size_t k = 0; k < sizeof bytes; k++)
			sane &= bytes[k] == 0x5a || (k >= 4096 && k < 4104);
		exos_pipe_close(&ends[0]);
		waitpid(child, &status, 0);
		sane &= WIFEXITED(status) && WEXITSTATUS(status) == 7;
	}
	check("scribbled", sane, "somebody's memory changed, or a process ended by it");
}

/* Writers that are ended in the middle: the reader hears of the end, each time. */
static void ended(void)
{
	static char bytes[5000];
	int ends[2], heard = 1, status;

	for (int round = 0; round < 20 && heard; round++) {
		pid_t child;
		ssize_t got;

		if (pipe(ends) != 0) {
			check("ended.pipe", 0, strerror(errno));
			return;
		}
		child = fork();
		if (child == 0)
			for (;;)
				if (write(ends[1], bytes, sizeof bytes) < 0)
					_exit(1);
		close(ends[1]);
		for (int k = 0; k < round; k++)
			heard &= read(ends[0], bytes, sizeof bytes) > 0;
		kill(child, SIGKILL);
		while ((got = read(ends[0], bytes, sizeof bytes)) > 0)
			;
		heard &= got == 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		close(ends[0]);
	}
	check("ended", heard, "a pipe has no end");
}

/* Readers that end in the middle: the writer is told, and not ended, if it says so. */
static void nobody_reads(void)
{
	static char bytes[5000];
	int ends[2], told = 1;

	signal(SIGPIPE, SIG_IGN);
	for (int round = 0; round < 10; round++) {
		pid_t child;
		ssize_t done;

		if (pipe(ends) != 0)
			break;
		child = fork();
		if (child == 0) {
			for (int k = 0; k < round; k++)
				read(ends[0], bytes, 100);
			_exit(0);
		}
		close(ends[0]);
		do
			done = write(ends[1], bytes, sizeof bytes);
		while (done == (ssize_t)sizeof bytes);
		told &= done >= 0 || errno == EPIPE;
		errno = 0;
		told &= write(ends[1], bytes, 1) == -1 && errno == EPIPE;
		waitpid(child, NULL, 0);
		close(ends[1]);
	}
	check("nobody-reads", told, "somebody wrote, or waited, for nobody");
}

static int refused(pid_t whom, int number, int why)
{
	errno = 0;
	return kill(whom, number) == -1 && errno == why;
}

/* A child asks for what is its parent's. */
static void strangers(void)
{
	pid_t child, parent = getpid();
	int status = 0;

	child = fork();
	if (child == 0) {
		int bad = 0;

		bad |= !refused(1, SIGKILL, EPERM) << 0;
		bad |= !refused(1000000, SIGKILL, ESRCH) << 1;
		bad |= !refused(getpid(), 1000, EINVAL) << 2;
		bad |= !refused(getpid(), -1, EINVAL) << 3;
		errno = 0;
		bad |= (waitpid(parent, &status, 0) != -1 || errno != ECHILD) << 4;
		errno = 0;
		bad |= (waitpid(getpid(), &status, 0) != -1 || errno != ECHILD) << 5;
		_exit(bad);
	}
	waitpid(child, &status, 0);
	printf("strangers: %#x\n", status);
	check("strangers", WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child may do what is not its to do");
	check("forgotten", refused(child, SIGKILL, ESRCH), "a process that was waited for is still known");
}

/* As many children as there may be, twice: the second time as many as the first. */
static void all(void)
{
	int counts[2] = { 0, 0 };

	for (int round = 0; round < 2; round++) {
		static pid_t children[300];

		while (counts[round] < 300) {
			pid_t child = fork();

			if (child == 0)
				for (;;)
					pause();
			if (child < 0)
				break;
			children[counts[round]++] = child;
		}
		for (int k = 0; k < counts[round]; k++)
			kill(children[k], SIGKILL);
		for (int k = 0; k < counts[round]; k++)
			if (waitpid(children[k], NULL, 0) != children[k])
				check("all.wait", 0, strerror(errno));
	}
	printf("children: %d, then %d\n", counts[0], counts[1]);
	check("all", counts[0] > 10 && counts[0] < 300 && counts[0] == counts[1], "something of them is left");
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	scribbled();
	ended();
	nobody_reads();
	strangers();
	all();
	return failures != 0;
}
