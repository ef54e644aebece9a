/* The first process of a Linux that stands beside ExOS: runs the programs of /bench one after the other, which are those of
   kernel/exos/programs/bench, compiled for Linux. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(void)
{
	fflush(stdout);
	sync();
	reboot(RB_AUTOBOOT);
	_exit(1);
}

int main(void)
{
	struct dirent **names;
	int count, status;

	if (getpid() != 1)
		return fputs("this is the first process of a machine\n", stderr), 2;
	mount("none", "/proc", "proc", 0, NULL);
	/* What the kernel still does of its own after its start is not to be counted with the programs. */
	sleep(5);
	count = chdir("/bench") ? -1 : scandir(".", &names, NULL, alphasort);
	for (int k = 0; k < count; k++) {
		pid_t child;

		if (names[k]->d_name[0] == '.')
			continue;
		fflush(stdout);
		child = fork();
		if (!child) {
			execl(names[k]->d_name, names[k]->d_name, (char *)NULL);
			_exit(127);
		}
		if (waitpid(child, &status, 0) != child || status) {
			printf("failed: %s: status %#x\n", names[k]->d_name, status);
			end();
		}
	}
	printf("linux: done\n");
	end();
}
