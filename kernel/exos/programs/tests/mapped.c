/* Files that are mapped: bytes of the archive, which comes page by page, and stays as it is. */
#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/memory.h>

#define PAGE EXOS_PAGE

/* This program itself is a file of the archive. */
static const char *own;
static int file;
static size_t length, whole;

static char *map(int protection, int flags)
{
	return mmap(NULL, length, protection, flags, file, 0);
}

/* Whether a mapping has what the file has. */
static int same(const char *mapped, off_t from)
{
	static char bytes[PAGE];
	ssize_t got;

	lseek(file, from, SEEK_SET);
	while ((got = read(file, bytes, PAGE)) > 0) {
		if (memcmp(mapped, bytes, got))
			return 0;
		mapped += got;
	}
	return got == 0;
}

static int ends_by(void (*what)(char *), char *with)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		what(with);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void stores(char *at)
{
	*(volatile char *)at = 1;
}

static void loads(char *at)
{
	(void)*(volatile char *)at;
}

static void contents(void)
{
	char *mine = map(PROT_READ, MAP_PRIVATE), *shared = map(PROT_READ, MAP_SHARED);
	CHECK(mine != MAP_FAILED && shared != MAP_FAILED && mine != shared);
	CHECK(same(mine, 0) && same(shared, 0));
	for (size_t k = length; k < whole; k++)
		CHECK(mine[k] == 0 && shared[k] == 0);
	/* Not copied: both are the archive's pages. */
	CHECK(exos_page_number(mine) > 0 && exos_page_number(mine) == exos_page_number(shared));
	CHECK(munmap(mine, length) == 0 && munmap(shared, length) == 0);
	CHECK(ends_by(loads, mine) == SIGSEGV);
}

static volatile int told;

static EXOS_HANDLER int counts(struct exos_fault *fault, void *argument)
{
	(void)fault, (void)argument;
	told++;
	return 0;
}

/* Copies are no affair of a program's handler. Nobody has forked yet. */
static void handlers_hear_nothing(void)
{
	char *mine = map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
	CHECK(mine != MAP_FAILED && mine[0] == 0177);
	exos_on_fault(counts, NULL);
	mine[0] = 1;
	exos_on_fault(NULL, NULL);
	CHECK(mine[0] == 1 && told == 0 && munmap(mine, length) == 0);
}

static void private_stores(void)
{
	char *one = map(PROT_READ | PROT_WRITE, MAP_PRIVATE), *other = map(PROT_READ, MAP_PRIVATE);
	CHECK(one != MAP_FAILED && other != MAP_FAILED);
	/* Of a page that was read before, of one that was not, and of the last. */
	CHECK(one[0] == 0177);
	one[0] = 1;
	one[PAGE + 5] ^= 0x55;
	one[length - 1] ^= 0x55;
	CHECK(one[1] == 'E' && other[0] == 0177);
	CHECK((one[PAGE + 5] ^ other[PAGE + 5]) == 0x55 && (one[length - 1] ^ other[length - 1]) == 0x55);
	CHECK(same(other, 0) && !memcmp(one + 2 * PAGE, other + 2 * PAGE, whole - 3 * PAGE));
	char *third = map(PROT_READ, MAP_SHARED);
	CHECK(third != MAP_FAILED && same(third, 0));
	CHECK(munmap(one, length) == 0 && munmap(other, length) == 0 && munmap(third, length) == 0);
}

static void next_exec_is_as_before(void)
{
	static char *words[] = { "mapped", "again", NULL };
	char *mine = map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
	int status;
	CHECK(mine != MAP_FAILED);
	memset(mine, 0xcc, length);
	pid_t pid = fork();
	if (pid == 0) {
		execve(own, words, NULL);
		_exit(1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 9);
	CHECK(munmap(mine, length) == 0);
}

static void nobody_stores_to_the_file(void)
{
	CHECK(map(PROT_READ | PROT_WRITE, MAP_SHARED) == MAP_FAILED && errno == EACCES);
	char *shared = map(PROT_READ, MAP_SHARED);
	CHECK(shared != MAP_FAILED);
	CHECK(mprotect(shared, PAGE, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
	CHECK(mprotect(shared, whole, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
	CHECK(ends_by(stores, shared) == SIGSEGV);
	/* What is not refused page by page is of no use. */
	CHECK(shared[0] == 0177);
	exos_protect(shared, PROT_READ | PROT_WRITE);
	CHECK(ends_by(stores, shared) == SIGSEGV && shared[0] == 0177 && same(shared, 0));
	CHECK(munmap(shared, length) == 0);
}

static void bounds(void)
{
	char *mine = mmap(NULL, whole + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	CHECK(mine != MAP_FAILED && same(mine, 0));
	mine[whole - 1] = 1;
	CHECK(ends_by(loads, mine + whole) == SIGSEGV && ends_by(stores, mine + whole + PAGE) == SIGSEGV);
	CHECK(munmap(mine, whole + 2 * PAGE) == 0);
	mine = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, whole);
	CHECK(mine != MAP_FAILED && ends_by(loads, mine) == SIGSEGV && munmap(mine, PAGE) == 0);
	mine = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 2 * PAGE);
	CHECK(mine != MAP_FAILED && same(mine, 2 * PAGE) && munmap(mine, length) == 0);
	/* A hole in the middle, and what is behind it is where it was. */
	mine = map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
	char kept = mine[3 * PAGE];
	CHECK(munmap(mine + PAGE, 2 * PAGE) == 0 && ends_by(loads, mine + 2 * PAGE) == SIGSEGV);
	CHECK(mine[0] == 0177 && mine[3 * PAGE] == kept && same(mine + 4 * PAGE, 4 * PAGE));
	CHECK(munmap(mine, length) == 0);
}

static void nonsense(void)
{
	int pipes[2], protection = PROT_READ;
	CHECK(mmap(NULL, 0, protection, MAP_PRIVATE, file, 0) == MAP_FAILED && errno == EINVAL);
	CHECK(mmap(NULL, PAGE, protection, MAP_PRIVATE, file, 5) == MAP_FAILED && errno == EINVAL);
	CHECK(mmap(NULL, PAGE, protection, MAP_PRIVATE, file, -PAGE) == MAP_FAILED && errno == EINVAL);
	CHECK(mmap(NULL, PAGE, protection, 0, file, 0) == MAP_FAILED && errno == EINVAL);
	CHECK(mmap(NULL, PAGE, protection, MAP_PRIVATE | MAP_SHARED, file, 0) == MAP_FAILED && errno == EINVAL);
	CHECK(mmap(NULL, PAGE, 64, MAP_PRIVATE, file, 0) == MAP_FAILED && errno == EINVAL);
	CHECK(mmap(NULL, PAGE, protection, MAP_PRIVATE, 63, 0) == MAP_FAILED && errno == EBADF);
	CHECK(mmap(NULL, PAGE, protection, MAP_PRIVATE, -1, 0) == MAP_FAILED && errno == EBADF);
	CHECK(pipe(pipes) == 0);
	CHECK(mmap(NULL, PAGE, protection, MAP_PRIVATE, pipes[0], 0) == MAP_FAILED && errno == ENODEV);
	CHECK(mmap(NULL, ~0ul << 13, protection, MAP_PRIVATE, file, 0) == MAP_FAILED && errno == ENOMEM);
	close(pipes[0]);
	close(pipes[1]);
}

static void copies_have_it_too(void)
{
	char *mine = map(PROT_READ | PROT_WRITE, MAP_PRIVATE), *shared = map(PROT_READ, MAP_SHARED);
	int status;
	CHECK(mine != MAP_FAILED && shared != MAP_FAILED);
	mine[PAGE] = 7;
	mine[length - 1] = 8;
	CHECK(mine[0] == 0177 && shared[0] == 0177 && shared[length - 1] != 8);
	pid_t pid = fork();
	if (pid == 0) {
		if (mine[PAGE] != 7 || mine[length - 1] != 8 || mine[0] != 0177)
			_exit(1);
		if (!same(shared, 0) || memcmp(mine + 2 * PAGE, shared + 2 * PAGE, 4 * PAGE))
			_exit(2);
		mine[PAGE] = mine[0] = mine[5 * PAGE] = 9;
		_exit(mine[PAGE] == 9 ? 0 : 3);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(mine[PAGE] == 7 && mine[0] == 0177 && mine[length - 1] == 8 && same(shared, 0));
	CHECK(mine[5 * PAGE] == shared[5 * PAGE]);
	CHECK(mprotect(mine, whole, PROT_NONE) == 0 && ends_by(loads, mine) == SIGSEGV);
	CHECK(mprotect(mine, whole, PROT_READ) == 0 && mine[PAGE] == 7 && ends_by(stores, mine) == SIGSEGV);
	CHECK(munmap(mine, length) == 0 && munmap(shared, length) == 0);
}

/* Mapped again and again, at once as many as there are, and nothing is lost. */
static void many(void)
{
	enum { MOST = 32 };
	char *all[MOST];
	for (int round = 0; round < 40; round++) {
		int count = 0;
		while (count < MOST && (all[count] = map(PROT_READ, MAP_PRIVATE)) != MAP_FAILED)
			count++;
		CHECK(count == MOST && all[MOST - 1][0] == 0177);
		CHECK(round > 0 || (map(PROT_READ, MAP_PRIVATE) == MAP_FAILED && errno == ENOMEM));
		while (count > 0)
			CHECK(munmap(all[--count], length) == 0);
	}
}

static void fixed(void)
{
	char *place = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(place != MAP_FAILED);
	memset(place, 5, 3 * PAGE);
	CHECK(mmap(place + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED | MAP_POPULATE, file, 0) == place + PAGE);
	CHECK(place[0] == 5 && place[PAGE] == 0177 && place[2 * PAGE] == 5);
	CHECK(munmap(place, 3 * PAGE) == 0);
	/* To be executed, and read by the kernel's calls. */
	char *text = map(PROT_READ | PROT_EXEC, MAP_PRIVATE);
	CHECK(text != MAP_FAILED && write(1, text + 1, 3) == 3 && write(1, "\n", 1) == 1);
	CHECK(munmap(text, length) == 0);
}

int main(int count, char **words)
{
	struct stat status;

	if (count > 1)
		return 9;
	own = words[0];
	file = open(own, O_RDONLY);
	if (file < 0 || fstat(file, &status))
		return 1;
	length = status.st_size;
	whole = (length + PAGE - 1) & -PAGE;
	RUN(handlers_hear_nothing);
	RUN(contents);
	RUN(private_stores);
	RUN(next_exec_is_as_before);
	RUN(nobody_stores_to_the_file);
	RUN(bounds);
	RUN(nonsense);
	RUN(copies_have_it_too);
	RUN(many);
	RUN(fixed);
	return failures != 0;
}
