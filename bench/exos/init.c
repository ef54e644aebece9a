/* The first process of a Linux that stands beside ExOS: runs programs one after the other, whose names stand in the file /list, and which
   are those of kernel/exos/programs/bench, compiled for Linux. */
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
	char name[256];
	FILE *list;
	int status;

	if (getpid() != 1)
		return fputs("this is the first process of a machine\n", stderr), 2;
	mount("none", "/proc", "proc", 0, NULL);
	mount("none", "/tmp", "tmpfs", 0, NULL);
	/* What the kernel still does of its own after its start is not to be counted with the programs. */
	sleep(5);
	list = fopen("/list", "r");
	if (!list || chdir("/bench"))
		return fputs("there is nothing to run\n", stderr), 2;
	while (fgets(name, sizeof name, list)) {
		pid_t child;

		name[strcspn(name, "\n")] = 0;
		fflush(stdout);
		child = fork();
		if (!child) {
			execl(name, name, (char *)NULL);
			_exit(127);
		}
		if (waitpid(child, &status, 0) != child || status) {
			printf("failed: %s: status %#x\n", name, status);
			end();
		}
	}
	printf("linux: done\n");
	end();
}
