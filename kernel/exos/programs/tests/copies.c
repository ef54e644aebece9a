/* Memory of parent and child: each has its own copy of what was there, but for shared memory. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/memory.h>

#define PAGE EXOS_PAGE
#define COUNT 150

static char image[2 * PAGE] __attribute__((aligned(PAGE)));
static int failures;

#define CHECK(condition)                                                     \
	do {                                                                 \
		if (!(condition)) {                                          \
			printf("FAILED line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
			failures++;                                          \
		}                                                            \
	} while (0)

static int protection = PROT_READ | PROT_WRITE;
static volatile int told;

static EXOS_HANDLER int opens(struct exos_fault *fault, void *argument)
{
	(void)argument;
	told++;
	return exos_protect((void *)(fault->address & -PAGE), protection) == 0;
}

/* Whether all pages have a value, which become another. */
static int turn(volatile char *pages, char from, char to)
{
	int right = 0;

	for (int k = 0; k < COUNT; k++) {
		right += pages[k * PAGE] == from;
		pages[k * PAGE] = to;
	}
	return right == COUNT;
}

static volatile char *own, *shared, *hidden;

static int child(int round)
{
	told = 0;
	CHECK(turn(own, (char)round, 100));
	CHECK(turn(shared, (char)round, 50));
	CHECK(image[PAGE] == (char)round);
	image[PAGE] = 100;
	exos_on_fault(opens, NULL);
	CHECK(hidden[5] == 9 && told == 1);
	hidden[5] = 10;
	CHECK(own[PAGE] == 100 && hidden[5] == 10);
	CHECK(mprotect((char *)shared, COUNT * PAGE, PROT_NONE) == 0);
	told = 0;
	CHECK(shared[3 * PAGE] == 50 && told == 1);
	CHECK(mprotect((char *)own, COUNT * PAGE, PROT_READ) == 0);
	told = 0;
	own[7 * PAGE] = 3;
	CHECK(told == 1 && own[7 * PAGE] == 3 && own[8 * PAGE] == 100);
	return failures;
}

int main(void)
{
	char *block = malloc(40 * PAGE);
	int flags = MAP_ANONYMOUS, all = PROT_READ | PROT_WRITE;

	own = mmap(0, COUNT * PAGE, all, flags | MAP_PRIVATE, -1, 0);
	shared = mmap(0, COUNT * PAGE, all, flags | MAP_SHARED, -1, 0);
	hidden = mmap(0, PAGE, all, flags | MAP_PRIVATE, -1, 0);
	CHECK((char *)own != MAP_FAILED && (char *)shared != MAP_FAILED);
	hidden[5] = 9;
	CHECK(mprotect((char *)hidden, PAGE, PROT_NONE) == 0);
	memset(block, 7, 40 * PAGE);
	turn(own, 0, 1);
	turn(shared, 0, 1);
	for (int round = 1; round < 6 && !failures; round++) {
		int status = -1;
		pid_t pid;

		image[PAGE] = (char)round;
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			CHECK(block[39 * PAGE] == 7);
			memset(block, 8, 40 * PAGE);
			/* One more, of what is a copy itself. */
			if (round == 3 && (pid = fork()) != 0) {
				CHECK(waitpid(pid, &status, 0) == pid && status == 0);
				CHECK(own[0] == 3 && shared[0] == 50 && block[0] == 8);
				_exit(failures);
			}
			_exit(child(round));
		}
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
		CHECK(image[PAGE] == (char)round && block[3 * PAGE] == 7);
		CHECK(turn(own, (char)round, (char)(round + 1)));
		CHECK(turn(shared, 50, (char)(round + 1)));
	}
	exos_on_fault(opens, NULL);
	CHECK(hidden[5] == 9 && told == 1);
	CHECK(munmap((char *)own, COUNT * PAGE) == 0 && munmap((char *)shared, COUNT * PAGE) == 0);
	if (!failures)
		printf("ok copies\n");
	return failures != 0;
}
