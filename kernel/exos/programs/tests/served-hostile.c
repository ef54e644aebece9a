/* Clients of a server of files that say nonsense, end in the middle, and change what they share with it
   during a call: it goes on, and has for others what they put there. */
#include "check.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <exos/lrpc.h>
#include <exos/memory.h>
#include <exos/process.h>
#include <exos/shared.h>

#include "server.h"

/* As postern_exos_abi::protocol has them. */
enum { ATTACH = 1, WALK, CLOSE, READ, WRITE, STATUS, MAKE, REMOVE, RENAME, LINK, LENGTH, MODE, TIME, TARGET, LIST, SYNC, SPACE, PAGE_OF, CHILD, LOCK, OPERATIONS };
enum { PAGES = 4, PAGE = 4096, CREATES = 4, OPENS = 2 };

static const char name[] = "/hostile";
static pid_t child;
static unsigned environment;
static unsigned char *area;
static struct exos_shared words;
static uint64_t state = 11;

static uint64_t any(void)
{
	static const uint64_t edges[] = { 0, 1, 2, 7, 255, 256, 1023, 1024, 4095, 4096, 16383, 16384, 16385, 1ull << 32, 1ull << 63, ~0ull, ~0ull - 4096 };
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	if (state >> 62)
		return edges[(state >> 40) % (sizeof edges / sizeof *edges)];
	return state >> 8;
}

static long ask(unsigned operation, unsigned argument, uint64_t a, uint64_t b, uint64_t c)
{
	for (;;) {
		struct exos_answer answer = exos_lrpc(environment, operation | (uint64_t)argument << 32, a, b, c);
		if (answer.error == EXOS_BUSY) {
			exos_yield();
			continue;
		}
		return answer.error ? answer.error * 1000 : (long)answer.value;
	}
}

/* An area of this process's own making: the last page has the numbers of the others. */
static int attach(void)
{
	struct exos_service found;
	uint32_t *numbers;
	if (area)
		exos_shared_detach(area);
	area = exos_shared_create((PAGES + 1) * PAGE, &words);
	if (!area || exos_service(name, &found))
		return 0;
	environment = found.environment;
	numbers = exos_map_page(words.page, words.capability, PROT_READ);
	if (!numbers)
		return 0;
	for (int at = 0; at < PAGES; at++)
		((uint32_t *)(area + PAGES * PAGE))[at] = numbers[at];
	uint32_t last = numbers[PAGES];
	return munmap(numbers, PAGE) == 0 && ask(ATTACH, 0, last, words.capability, 0) > 0;
}

static void scribble(void)
{
	static const char letters[] = "ab/.\0";
	uint64_t kind = any() % 3;
	for (int at = 0; at < 64; at++) {
		unsigned char *to = area + (at < 40 ? at : 1024 + at);
		*to = kind == 0 ? letters[(any() >> 20) % 5] : kind == 1 ? "aab/"[at % 4] : any();
	}
}

/* Whether others have of it what they put there. */
static int serves(void)
{
	static char bytes[30000], again[30000];
	char path[64];
	int status;
	pid_t other = fork();
	if (other == 0) {
		sprintf(path, "%s/honest %d", name, (int)getpid());
		for (unsigned at = 0; at < sizeof bytes; at++)
			bytes[at] = at * 13 + getpid();
		int file = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
		int well = file >= 0 && write(file, bytes, sizeof bytes) == sizeof bytes;
		well = well && pread(file, again, sizeof again, 0) == sizeof again && !memcmp(bytes, again, sizeof bytes);
		_exit(well && unlink(path) == 0 && close(file) == 0 ? 0 : 1);
	}
	return other > 0 && waitpid(other, &status, 0) == other && status == 0;
}

static void operations_of_nonsense(void)
{
	CHECK(attach());
	for (int round = 0; round < 20000; round++) {
		unsigned operation = (any() >> 3) % (OPERATIONS + 3);
		if (round % 8 == 0)
			scribble();
		/* A new area only now and then: without one all else is refused. */
		if (operation == ATTACH && round % 64)
			operation = WALK;
		ask(operation, any(), any() % 3 ? any() : any() % 40, any(), any());
		if (operation == ATTACH || round % 1000 == 0)
			CHECK(attach());
	}
	CHECK(ask(0, 0, 0, 0, 0) == -ENOSYS && ask(99, 0, 0, 0, 0) == -ENOSYS);
	CHECK(serves());
}

static void areas_that_are_none(void)
{
	static char own[PAGE] __attribute__((aligned(4096)));
	own[0] = 1;
	/* A page of this process's own could be gone while the server uses it; others are others'. */
	CHECK(attach());
	CHECK(ask(ATTACH, 0, exos_page_number((uint64_t)own), 0, 0) < 0);
	CHECK(ask(STATUS, 0, 1, 0, 0) == -ENOTCONN);
	CHECK(ask(ATTACH, 0, exos_page_number((uint64_t)own), words.capability, 0) < 0);
	for (int round = 0; round < 3000; round++)
		CHECK(ask(ATTACH, 0, any() % 20000, round % 2 ? any() : words.capability, 0) != 0);
	CHECK(attach());
	/* The page of answers is right, and those that it names are not. */
	for (int round = 0; round < 200; round++) {
		uint32_t *numbers = exos_map_page(words.page, words.capability, PROT_READ);
		((uint32_t *)(area + PAGES * PAGE))[round % 4] = any();
		ask(ATTACH, 0, numbers[PAGES], words.capability, 0);
		munmap(numbers, PAGE);
	}
	CHECK(attach() && ask(STATUS, 0, ask(ATTACH, 0, 0, 0, 0), 0, 0) < 0);
	CHECK(attach() && serves());
}

/* A path into the area. */
static uint64_t put(const char *path)
{
	memcpy(area, path, strlen(path));
	return strlen(path);
}

static void too_much_of_everything(void)
{
	char path[32];
	int opened = 0, locked = 0;
	CHECK(attach());
	for (; opened < 500; opened++) {
		sprintf(path, "many %d", opened);
		if (ask(WALK, OPENS | CREATES, 0, put(path), 0600) < 0)
			break;
	}
	CHECK(opened >= 16 && opened < 500);
	uint64_t node = *(uint64_t *)(area + PAGES * PAGE + 16);
	CHECK(ask(STATUS, 0, node, 0, 0) == 0);
	CHECK(ask(LOCK, 2, 12345678, 0, 1) == -EBADF);
	ask(WALK, OPENS, 0, put("many 0"), 0);
	node = *(uint64_t *)(area + PAGES * PAGE + 16);
	for (; locked < 10000; locked++)
		if (ask(LOCK, 2, node, locked * 2, 1) < 0)
			break;
	CHECK(locked >= 64 && locked < 10000 && serves());
	CHECK(ask(CHILD, 0, getppid(), 0, 0) < 0 && ask(CHILD, 0, 1, 0, 0) < 0 && ask(CHILD, 0, child, 0, 0) < 0);
	for (int at = 0; at <= opened; at++) {
		sprintf(path, "many %d", at);
		ask(REMOVE, 0, ask(ATTACH, 0, 0, 0, 0), put(path), 0);
	}
}

/* A child that shares the area changes names and targets while they are used. */
static void areas_that_change_meanwhile(void)
{
	CHECK(attach());
	int status;
	long root = ask(WALK, 0, 0, put("/"), 0) == 0 ? (long)*(uint64_t *)(area + PAGES * PAGE + 16) : 0;
	pid_t other = fork();
	if (other == 0) {
		for (unsigned round = 0;; round++) {
			area[round % 16] = "a/b.c\0dE"[(round / 16) % 8];
			area[1024 + round % 64] = round & 1 ? 0 : 'x';
			*(uint32_t *)(area + PAGES * PAGE + round % 4 * 4) = round;
			if (round % 4096 == 0)
				exos_yield();
		}
	}
	for (int round = 0; round < 5000; round++) {
		ask(WALK, any() & 0xff, 0, 16, 0700);
		ask(MAKE, 1 + round % 3, root, 1 + round % 15, 0700);
		ask(RENAME, 0, root, root, 5 | 7ull << 32);
		ask(REMOVE, round % 2, root, 1 + round % 15, 0);
		ask(LIST, 0, root, 0, 16384);
	}
	kill(other, SIGKILL);
	CHECK(waitpid(other, &status, 0) == other && serves());
}

static void clients_that_end_in_the_middle(void)
{
	struct statvfs before, after;
	int status;
	char path[64];
	CHECK(serves() && statvfs(name, &before) == 0);
	for (int round = 0; round < 30; round++) {
		pid_t other = fork();
		if (other == 0) {
			static char bytes[16384];
			sprintf(path, "%s/victim %d", name, round);
			int file = open(path, O_RDWR | O_CREAT, 0600);
			unlink(path);
			for (int at = 0;; at++) {
				pwrite(file, bytes, sizeof bytes, (off_t)(at % 32) * sizeof bytes);
				pread(file, bytes, sizeof bytes, (off_t)(at % 7) * 999);
			}
		}
		usleep(1000 + any() % 9 * 1700);
		kill(other, SIGKILL);
		CHECK(waitpid(other, &status, 0) == other);
	}
	for (int round = 0; round < 30; round++) {
		sprintf(path, "%s/victim %d", name, round);
		unlink(path);
	}
	CHECK(serves() && statvfs(name, &after) == 0 && after.f_bfree == before.f_bfree && after.f_ffree == before.f_ffree);
}

/* What was open there is gone; the name can be had again, and what is there is new. */
static void servers_that_end(void)
{
	struct stat status;
	char path[64], byte;
	sprintf(path, "%s/file", name);
	int file = open(path, O_RDWR | O_CREAT, 0600);
	CHECK(file >= 0 && write(file, "x", 1) == 1);
	server_ends(child);
	CHECK(pread(file, &byte, 1, 0) == -1 && (errno == ESTALE || errno == EIO));
	CHECK(stat(path, &status) == -1 && fsync(file) == -1);
	child = server(name, 1024);
	CHECK(child > 0 && serves() && stat(path, &status) == -1 && errno == ENOENT);
	CHECK(pread(file, &byte, 1, 0) == -1 && errno == ESTALE && close(file) == 0);
	file = open(path, O_RDWR | O_CREAT, 0600);
	CHECK(file >= 0 && write(file, "y", 1) == 1 && close(file) == 0 && unlink(path) == 0);
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	child = server(name, 4096);
	if (child < 0)
		return 2;
	RUN(operations_of_nonsense);
	RUN(areas_that_are_none);
	RUN(too_much_of_everything);
	RUN(areas_that_change_meanwhile);
	RUN(clients_that_end_in_the_middle);
	RUN(servers_that_end);
	server_ends(child);
	return failures ? 1 : 0;
}
