/* Services: who offers one is found by everybody, a name is one process's, and ends with it. */
#include "check.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/process.h>
#include <exos/service.h>

static const uint64_t words[] = { 1, 2, 3, ~0ull };

static void services_are_found(void)
{
	struct exos_service found;
	uint64_t other[] = { 5, 6, 7, 8 };
	CHECK(exos_service("a service", &found) == -1 && errno == ENOENT);
	CHECK(exos_serve("a service", words) == 0);
	CHECK(exos_service("a service", &found) == 0 && found.pid == (uint32_t)getpid());
	CHECK(!memcmp(found.words, words, sizeof words));
	CHECK(found.environment == exos_find(getpid())->environment && found.birth == exos_find(getpid())->birth);
	CHECK(exos_serve("a service", other) == 0);
	CHECK(exos_service("a service", &found) == 0 && !memcmp(found.words, other, sizeof other));
	CHECK(exos_serve_no_more("a service") == 0 && exos_service("a service", &found) == -1);
	CHECK(exos_serve_no_more("a service") == -1 && errno == ENOENT);
}

static void names_are_checked(void)
{
	static const char *const bad[] = { "", "//", "/a/", "/a/../b", "/./a",
		"123456789 123456789 123456789 123456789 12345678", "123456789 123456789 123456789 123456789 1234567890123" };
	for (unsigned at = 0; at < sizeof bad / sizeof *bad; at++)
		CHECK(exos_serve(bad[at], words) == -1 && errno == EINVAL);
	CHECK(exos_serve("123456789 123456789 123456789 123456789 1234567", words) == 0);
	CHECK(exos_serve_no_more("123456789 123456789 123456789 123456789 1234567") == 0);
}

/* Waits for a child that serves. */
static pid_t server(const char *name)
{
	struct exos_service found;
	pid_t child = fork();
	if (child == 0) {
		if (exos_serve(name, words))
			_exit(1);
		for (;;)
			sleep(1);
	}
	while (exos_service(name, &found) || found.pid != (uint32_t)child)
		usleep(1000);
	return child;
}

static void names_end_with_their_process(void)
{
	struct exos_service found;
	int status;
	pid_t child = server("/somewhere");
	CHECK(exos_serve("/somewhere", words) == -1 && errno == EEXIST);
	CHECK(exos_serve_no_more("/somewhere") == -1 && errno == EEXIST);
	kill(child, SIGKILL);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(exos_service("/somewhere", &found) == -1);
	CHECK(exos_serve("/somewhere", words) == 0 && exos_serve_no_more("/somewhere") == 0);
	/* A copy offers nothing of its own. */
	CHECK(exos_serve("parent's", words) == 0);
	child = fork();
	if (child == 0)
		_exit(exos_serve_no_more("parent's") == -1 && errno == EEXIST ? 0 : 1);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(exos_serve_no_more("parent's") == 0);
}

/* As many as there is room for, and then not one more. */
static void there_is_an_end(void)
{
	char name[16];
	int count = 0;
	for (; count < 64; count++) {
		snprintf(name, sizeof name, "many %d", count);
		if (exos_serve(name, words))
			break;
	}
	int error = errno, all = count;
	while (count-- > 0) {
		snprintf(name, sizeof name, "many %d", count);
		CHECK(exos_serve_no_more(name) == 0);
	}
	CHECK(error == ENOSPC && all > 20 && all < 64);
}

static void limited_trees_offer_no_files(void)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		exos_limit(0, 4);
		int refused = exos_serve("/mine", words) == -1 && errno == EPERM && exos_serve("net", words) == -1 && errno == EPERM;
		_exit(refused && exos_serve("mine", words) == 0 ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void devices_are_parted(void)
{
	CHECK(exos_holdings(2) >= 2 && exos_holdings(1) >= 2);
	CHECK(exos_holdings(1000) == -1 && errno == EAGAIN);
	CHECK(exos_blocks(1 << 30) == -1 && errno == ENOSPC);
	if (exos_blocks(1) < 0)
		return;
	/* What is given back is one range again. */
	long first = exos_blocks(3), second = exos_blocks(500);
	CHECK(first > 0 && second > 0 && first != second);
	CHECK(exos_blocks(0) == 0);
	for (int round = 0; round < 50; round++)
		CHECK(exos_blocks(504) > 0 && exos_blocks(0) == 0);
}

int main(void)
{
	RUN(services_are_found);
	RUN(names_are_checked);
	RUN(names_end_with_their_process);
	RUN(there_is_an_end);
	RUN(limited_trees_offer_no_files);
	RUN(devices_are_parted);
	return failures != 0;
}
