/* The first and only program of a Linux that stands beside Aegis, as Ultrix did in the paper: each of
 * its rows is said as `figure NAME INSTRUCTIONS REPEATS`. */
#include "measure.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>

void row(const char *name, uint64_t instructions, unsigned repeats)
{
	MARK(ROW);
	printf("figure %s %lu %u\n", name, instructions / repeats, repeats);
	fflush(stdout);
}

static void end(void)
{
	sync();
	reboot(RB_AUTOBOOT);
	_exit(1);
}

void fail(const char *what)
{
	printf("failed: ");
	fflush(stdout);
	perror(what);
	fflush(stderr);
	end();
	_exit(1);
}

uint64_t clock_itself(void)
{
	uint64_t least = ~0ull;

	for (int try = 0; try < TRIES; try++) {
		uint64_t begun = now(), took = now() - begun;

		if (took < least)
			least = took;
	}
	return least;
}

__attribute__((noinline)) static void nothing(void)
{
	__asm__ volatile("");
}

void calls(void)
{
	uint64_t took, loop;

	/* Both loops count and branch; only one calls. */
	LEAST(loop, for (int k = 0; k < MANY; k++) __asm__ volatile(""));
	LEAST(took, for (int k = 0; k < MANY; k++) nothing());
	row("procedure", took - loop, MANY);
	LEAST(took, call3(SYS_getpid, 0, 0, 0));
	row("getpid", took, 1);
}

/* What the kernel says of the processor's faults, and does about them. */
static void mitigations(void)
{
	const char *folder = "/sys/devices/system/cpu/vulnerabilities";
	DIR *names = opendir(folder);

	for (struct dirent *name; names && (name = readdir(names));) {
		char path[512], text[256];
		int file;
		ssize_t size;

		snprintf(path, sizeof path, "%s/%s", folder, name->d_name);
		file = open(path, O_RDONLY);
		size = read(file, text, sizeof text - 1);
		if (size <= 0)
			continue;
		text[size - 1] = 0;
		if (strcmp(text, "Not affected"))
			printf("note %s: %s\n", name->d_name, text);
		close(file);
	}
	fflush(stdout);
}

int main(int count, char **words)
{
	if (getpid() != 1)
		return fputs("this is the first process of a machine\n", stderr), 2;
	mount("none", "/sys", "sysfs", 0, NULL);
	if (count > 1 && !strcmp(words[1], "network")) {
		network();
	} else {
		mitigations();
		calls();
		exceptions();
		transfers();
		memory();
		filters();
	}
	printf("linux: done\n");
	fflush(stdout);
	end();
}
