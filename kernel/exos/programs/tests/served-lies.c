/* A server of files that lies: about lengths, numbers, names, links. Those who ask it get errors or nonsense,
   and nothing else of theirs changes; a silent one is ended. */
#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <exos/lrpc.h>
#include <exos/memory.h>
#include <exos/process.h>
#include <exos/service.h>

#include "server.h"

extern char **environ;

enum { PAGE = 4096, ATTACH = 1 };

static const char name[] = "/lies";
static uint64_t state;

static uint64_t any(void)
{
	static const uint64_t edges[] = { 0, 1, 2, 3, 255, 1023, 1024, 4096, 16384, 16385, 1ull << 32, 1ull << 63, ~0ull, ~0ull - 1, ~0ull - 4096 };
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	if (state >> 62)
		return edges[(state >> 40) % (sizeof edges / sizeof *edges)];
	return state >> 8;
}

/* The areas of clients: their last pages, and the first ones. */
static unsigned char *areas[4][2];
static unsigned next;

static uint64_t lies(unsigned caller, uint64_t first, uint64_t a, uint64_t b, uint64_t c)
{
	(void)caller, (void)c;
	if ((uint32_t)first == ATTACH) {
		unsigned char **area = areas[next++ % 4];
		for (int which = 0; which < 2; which++)
			if (area[which])
				munmap(area[which], PAGE);
		area[0] = exos_map_page((long)a, b, PROT_READ | PROT_WRITE);
		area[1] = NULL;
		if (area[0] == MAP_FAILED)
			area[0] = NULL;
		else
			area[1] = exos_map_page(((uint32_t *)area[0])[0], b, PROT_READ | PROT_WRITE);
		if (area[1] == MAP_FAILED)
			area[1] = NULL;
		return any() % 8 ? 1 : any();
	}
	for (int which = 0; which < 4; which++) {
		uint64_t *words = (uint64_t *)areas[which][0];
		for (int at = 2; words && at < 12; at++)
			words[at] = any() % 4 ? any() % 4 : any();
		for (int at = 0; areas[which][1] && at < 300; at++)
			areas[which][1][(any() >> 16) % PAGE] = any() % 3 ? "/a.b"[any() % 4] : any();
	}
	return any() % 3 ? any() % 5 : any();
}

static uint64_t silence(unsigned caller, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	(void)caller, (void)a, (void)b, (void)c, (void)d;
	for (;;)
		exos_yield();
}

static pid_t serve(exos_procedure *procedure, uint64_t seed)
{
	static const uint64_t words[EXOS_SERVICE_WORDS] = { 1, 2, 1, 0 };
	static volatile int never;
	struct exos_service found;
	pid_t child = fork();
	if (child == 0) {
		state = seed;
		if (exos_serve(name, words) == 0)
			exos_lrpc_serve(procedure, &never);
		_exit(1);
	}
	while (exos_service(name, &found) || found.pid != (uint32_t)child)
		usleep(1000);
	return child;
}

/* Whether bytes around some are as they were. */
static char guarded[3 * PAGE];

static int whole(size_t from, size_t end)
{
	for (size_t at = 0; at < sizeof guarded; at++)
		if ((at < from || at >= end) && guarded[at] != 'g')
			return 0;
	memset(guarded, 'g', sizeof guarded);
	return 1;
}

static int asks(int round)
{
	char path[64];
	struct stat status;
	struct statvfs room;
	sprintf(path, "%s/a/b%d/../c", name, round % 7);
	memset(guarded, 'g', sizeof guarded);
	int file = open(path, round % 3 | (round % 5 ? 0 : O_CREAT), 0600);
	ssize_t got = read(file, guarded + PAGE, 1000);
	if (got > 1000 || !whole(PAGE, PAGE + 1000))
		return 1;
	got = pread(file, guarded + PAGE, 10, (off_t)any() & LONG_MAX);
	if (got > 10 || !whole(PAGE, PAGE + 10))
		return 2;
	got = write(file, guarded, sizeof guarded);
	if (got == 0 || got > (ssize_t)sizeof guarded)
		return 3;
	got = readlink(path, guarded + PAGE, 20);
	if (got > 20 || !whole(PAGE, PAGE + 20))
		return 4;
	lseek(file, 5, SEEK_END);
	fstat(file, &status);
	stat(path, &status);
	statvfs(path, &room);
	void *at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, 0);
	if (at != MAP_FAILED)
		munmap(at, PAGE);
	fcntl(file, F_GETLK, &(struct flock){ .l_type = F_WRLCK });
	DIR *folder = opendir(name);
	struct dirent *entry;
	for (int count = 0; folder && count < 20 && (entry = readdir(folder)); count++)
		if (!memchr(entry->d_name, 0, sizeof entry->d_name))
			return 5;
	if (folder)
		closedir(folder);
	rename(path, "/lies/x");
	unlink(path);
	chmod(path, 0700);
	mkdir(path, 0700);
	symlink(path, "/lies/y");
	if (realpath(path, guarded + PAGE) && strlen(guarded + PAGE) >= PATH_MAX)
		return 6;
	if (round % 10 == 0 && chdir(path) == 0)
		chdir("/");
	if (round % 8 == 0) {
		/* What it starts may be anything. */
		pid_t child = fork();
		if (child == 0) {
			execve(path, (char *[]){ path, NULL }, environ);
			_exit(0);
		}
		/* There may be no room for it: then -1 would be everybody. */
		if (child > 0) {
			usleep(500);
			kill(child, SIGKILL);
			waitpid(child, NULL, 0);
		}
	}
	if (file >= 0)
		close(file);
	return 0;
}

static void lies_harm_nobody(void)
{
	for (int seed = 1; seed <= 6; seed++) {
		pid_t child = serve(lies, seed * 77);
		int status;
		/* A client that lives through it all, and does not hang. */
		pid_t client = fork();
		if (client == 0) {
			state = seed;
			for (int round = 0; round < 120; round++) {
				int wrong = asks(round);
				if (wrong)
					_exit(wrong);
			}
			_exit(0);
		}
		CHECK(waitpid(client, &status, 0) == client);
		if (status)
			printf("seed %d: status %#x\n", seed, status);
		CHECK(status == 0);
		server_ends(child);
	}
}

/* Who waits for a silent server can be ended, and goes on when that ends. */
static void silence_is_ended(void)
{
	pid_t child = serve(silence, 1), clients[2];
	struct stat found;
	int status;
	for (int which = 0; which < 2; which++) {
		clients[which] = fork();
		if (clients[which] == 0)
			_exit(stat("/lies/x", &found) == -1 ? errno : 0);
	}
	usleep(30000);
	CHECK(waitpid(clients[0], &status, WNOHANG) == 0 && waitpid(clients[1], &status, WNOHANG) == 0);
	kill(clients[0], SIGKILL);
	CHECK(waitpid(clients[0], &status, 0) == clients[0] && WIFSIGNALED(status));
	server_ends(child);
	CHECK(waitpid(clients[1], &status, 0) == clients[1] && WIFEXITED(status) && WEXITSTATUS(status));
	CHECK(stat("/lies/x", &found) == -1);
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	RUN(lies_harm_nobody);
	RUN(silence_is_ended);
	return failures ? 1 : 0;
}
