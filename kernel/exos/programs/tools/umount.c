/* Ends the servers of mount points: umount POINT... */
#include "tool.h"

#include <exos/files.h>
#include <exos/service.h>

int main(int count, char **words)
{
	struct exos_service found;
	options(count, words, "", "POINT...");
	if (optind == count)
		usage("POINT...");
	for (int each = optind; each < count; each++) {
		if (exos_unmount(words[each]))
			complain(words[each]);
		/* It has its name until it has ended. */
		for (int looks = 0; looks < 1000 && exos_service(words[each], &found) == 0; looks++)
			usleep(1000);
	}
	return tool_failed ? 32 : 0;
}
