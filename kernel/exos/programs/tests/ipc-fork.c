/* Communication between a process and its copies. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/doorbell.h>
#include <exos/lrpc.h>
#include <exos/pipe.h>
#include <exos/shared.h>

#define BIG 200000

static int failed;

static void check(int holds, const char *name, const char *why)
{
	if (!holds) {
		printf("FAILED %s: %s\n", name, why);
		failed = 1;
	}
}

static struct common {
	struct exos_doorbell ping, pong;
	unsigned server;
	volatile int until;
	uint64_t calls, word;
} *common;

static int status_of(pid_t child)
{
	int status = -1;

	return waitpid(child, &status, 0) == child ? status : -1;
}

static unsigned char byte_at(int at)
{
	return (unsigned char)(at * 7 + (at >> 9));
}

/* More than the ring holds, in pieces of all lengths, to the end. */
static void transfer(void)
{
	static unsigned char bytes[BIG];
	int ends[2], at = 0, same = 1;

	check(!pipe(ends), "transfer", "no pipe");
	pid_t child = fork();
	if (child == 0) {
		close(ends[0]);
		for (int k = 0; k < BIG; k++)
			bytes[k] = byte_at(k);
		for (int length = 1; at < BIG; length = length * 3 % 40009) {
			int count = length < BIG - at ? length : BIG - at;
			if (write(ends[1], bytes + at, count) != count)
				_exit(1);
			at += count;
		}
		_exit(0);
	}
	close(ends[1]);
	for (int length = 1;; length = length * 5 % 30011) {
		int count = read(ends[0], bytes, length);
		if (count <= 0) {
			check(count == 0, "transfer", "an error in place of the end");
			break;
		}
		for (int k = 0; k < count; k++)
			same &= bytes[k] == byte_at(at + k);
		at += count;
	}
	check(same, "transfer", "other bytes");
	check(at == BIG, "transfer", "not all bytes");
	close(ends[0]);
	check(status_of(child) == 0, "transfer", "the writer failed");
}

/* Who writes to nobody gets an error, also when the reader was killed. */
static void broken(void)
{
	int ends[2];
	char byte = 1;

	signal(SIGPIPE, SIG_IGN);
	check(!pipe(ends), "broken", "no pipe");
	pid_t child = fork();
	if (child == 0) {
		close(ends[1]);
		for (;;)
			if (read(ends[0], &byte, 1) != 1)
				_exit(1);
	}
	close(ends[0]);
	for (int k = 0; k < 100; k++)
		check(write(ends[1], &byte, 1) == 1, "broken", "a byte is not written");
	kill(child, SIGKILL);
	check(WTERMSIG(status_of(child)) == SIGKILL, "broken", "it is not killed");
	errno = 0;
	check(write(ends[1], &byte, 1) == -1 && errno == EPIPE, "broken", "no EPIPE");
	close(ends[1]);
	/* And the other way: a writer that is killed is an end. */
	check(!pipe(ends), "broken", "no second pipe");
	child = fork();
	if (child == 0)
		for (;;)
			pause();
	close(ends[1]);
	kill(child, SIGKILL);
	check(read(ends[0], &byte, 1) == 0, "broken", "no end");
	status_of(child);
	close(ends[0]);
	signal(SIGPIPE, SIG_DFL);
	check(!pipe(ends), "broken", "no third pipe");
	child = fork();
	if (child == 0) {
		close(ends[0]);
		while (write(ends[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	close(ends[0]);
	close(ends[1]);
	check(WTERMSIG(status_of(child)) == SIGPIPE, "broken", "no SIGPIPE");
}

/* What a child made is there after its death. */
static void shared(void)
{
	struct exos_shared words;
	int ends[2];

	check(!pipe(ends), "shared", "no pipe");
	pid_t child = fork();
	if (child == 0) {
		char *made = exos_shared_create(8 * 4096, &words);
		if (!made)
			_exit(1);
		strcpy(made + 5 * 4096, "left");
		common->word = 7;
		write(ends[1], &words, sizeof words);
		for (;;)
			pause();
	}
	check(read(ends[0], &words, sizeof words) == sizeof words, "shared", "no words");
	char *attached = exos_shared_attach(&words);
	kill(child, SIGKILL);
	status_of(child);
	check(attached && !strcmp(attached + 5 * 4096, "left"), "shared", "it is gone with who made it");
	check(common->word == 7, "shared", "a copy has other memory");
	exos_shared_detach(attached);
	close(ends[0]);
	close(ends[1]);
}

static void bells(void)
{
	struct exos_doorbell *ping[] = {&common->ping}, *pong[] = {&common->pong};
	uint64_t seen = 0;

	pid_t child = fork();
	if (child == 0) {
		for (int round = 0; round < 200; round++) {
			if (exos_doorbell_wait(ping, &seen, 1, 0))
				_exit(1);
			exos_doorbell_ring(&common->pong);
		}
		_exit(0);
	}
	for (int round = 0; round < 200; round++) {
		exos_doorbell_ring(&common->ping);
		check(!exos_doorbell_wait(pong, &seen, 1, 0), "bells", "it does not wake");
	}
	check(status_of(child) == 0 && seen == 200, "bells", "rings are lost");
}

static uint64_t serves(unsigned caller, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	(void)caller;
	if (a == 999)
		_exit(3);
	common->calls++;
	return a + 10 * b + 100 * c + 1000 * d;
}

static void procedures(void)
{
	struct exos_answer answer;
	int wrong = 0;

	pid_t child = fork();
	if (child == 0) {
		common->server = exos_environment();
		exos_lrpc_serve(serves, &common->until);
		_exit(0);
	}
	while (!common->server || exos_lrpc(common->server, 1, 2, 3, 4).error)
		exos_yield();
	uint64_t before = common->calls;
	for (uint64_t round = 0; round < 500; round++) {
		do
			answer = exos_lrpc(common->server, round, 2, 3, 4);
		while (answer.error == EXOS_BUSY);
		wrong += answer.error != 0 || answer.value != round + 4320;
	}
	check(!wrong, "lrpc", "other answers");
	check(common->calls == before + 500, "lrpc", "other calls");
	wrong = 0;
	for (uint64_t round = 0; round < 500; round++) {
		do
			answer = exos_tlrpc(common->server, round, 2, 3, 4);
		while (answer.error == EXOS_BUSY);
		wrong += answer.error != 0 || answer.value != round + 4320;
	}
	check(!wrong, "tlrpc", "other answers");
	/* The server ends in the middle of a call. */
	do
		answer = exos_lrpc(common->server, 999, 0, 0, 0);
	while (answer.error == EXOS_BUSY);
	check(answer.error == EXOS_GONE, "lrpc", "a server that ended answers");
	check(WEXITSTATUS(status_of(child)) == 3, "lrpc", "the server ended otherwise");
}

int main(void)
{
	struct exos_shared words;

	setvbuf(stdout, NULL, _IONBF, 0);
	common = exos_shared_create(4096, &words);
	check(common != NULL, "shared", "it is not made");
	if (!common)
		return 1;
	puts("transfer"), transfer();
	puts("broken"), broken();
	puts("shared"), shared();
	puts("bells"), bells();
	puts("procedures"), procedures();
	if (!failed)
		puts("ok ipc-fork");
	return failed;
}
