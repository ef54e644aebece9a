/* The first process of a Linux that is started and nothing else: what a shell needs is mounted, and there is its prompt. */
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

int main(void)
{
	if (getpid() != 1)
		return fputs("this is the first process of a machine\n", stderr), 2;
	mount("none", "/proc", "proc", 0, NULL);
	mount("none", "/tmp", "tmpfs", 0, NULL);
	if (write(1, "/$ ", 3) != 3)
		return 1;
	for (;;)
		pause();
}
