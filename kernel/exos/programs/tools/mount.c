/* Who serves files, and where: a line each, the mount point and the process. */
#include "tool.h"

#include <exos/process.h>
#include <exos/service.h>

int main(int count, char **arguments)
{
	struct exos_service found;
	char name[EXOS_SERVICE_NAME];
	options(count, arguments, "", "");
	if (optind < count)
		usage("");
	for (unsigned place = 0;; place++) {
		if (exos_service_at(place, &found, name) == 0) {
			const struct exos_process *server = exos_find((pid_t)found.pid);
			if (name[0] == '/')
				printf("%s %s %u\n", name, server ? server->name : "?", (unsigned)found.pid);
		} else if (errno == EINVAL) {
			break;
		}
	}
	return finished();
}
