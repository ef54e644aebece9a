/* Who serves files, and where: a line each, the mount point and the process. `mount -t nfs ...` is
   `nfs ...`, which mounts. */
#include "tool.h"

#include <exos/process.h>
#include <exos/service.h>

int main(int count, char **arguments)
{
	struct exos_service found;
	char name[EXOS_SERVICE_NAME];
	if (count > 3 && !strcmp(arguments[1], "-t") && !strcmp(arguments[2], "nfs")) {
		tool_name = "mount";
		execvp("nfs", arguments + 2);
		return complain("nfs");
	}
	options(count, arguments, "", "[-t nfs [-o OPTION,...] HOST:/FOLDER POINT]");
	if (optind < count)
		usage("[-t nfs [-o OPTION,...] HOST:/FOLDER POINT]");
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
