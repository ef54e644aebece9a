/* How full file systems are, in KiB: those of names, or all. */
#include "tool.h"

#include <sys/statvfs.h>

#include <exos/service.h>

static void tell(const char *name)
{
	struct statvfs room;
	if (statvfs(name, &room)) {
		complain(name);
		return;
	}
	unsigned long block = room.f_frsize / 1024, used = room.f_blocks - room.f_bfree;
	unsigned long part = room.f_blocks ? (used * 100 + room.f_blocks - 1) / room.f_blocks : 0;
	printf("%-16s %10lu %10lu %10lu %3lu%%\n", name, room.f_blocks * block, used * block, room.f_bavail * block, part);
}

int main(int count, char **arguments)
{
	struct exos_service found;
	char name[EXOS_SERVICE_NAME];
	options(count, arguments, "", "[NAME...]");
	printf("%-16s %10s %10s %10s %4s\n", "mounted on", "KiB", "used", "free", "used");
	for (int at = optind; at < count; at++)
		tell(arguments[at]);
	for (unsigned place = 0; optind == count; place++) {
		if (!exos_service_at(place, &found, name)) {
			if (name[0] == '/')
				tell(name);
		} else if (errno == EINVAL) {
			break;
		}
	}
	return finished();
}
