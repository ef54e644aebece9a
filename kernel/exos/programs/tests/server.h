/* A server of files in memory, which is a child of the test's. */
#ifndef SERVER_H
#define SERVER_H

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __exos__
#include <exos/files.h>
#include <exos/service.h>

/* Starts it, and waits until it has the name. */
static inline pid_t server(const char *name, unsigned pages)
{
	struct exos_service found;
	pid_t child = fork();
	if (child == 0) {
		exos_files_in_memory(name, pages);
		_exit(1);
	}
	while (child > 0 && (exos_service(name, &found) || found.pid != (uint32_t)child)) {
		if (waitpid(child, NULL, WNOHANG) == child)
			return -1;
		usleep(1000);
	}
	return child;
}

static inline void server_ends(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}
#endif
#endif
