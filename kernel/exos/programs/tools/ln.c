/* One more name for a file; -s a link to a name, -f instead of what has the name. */
#include "tool.h"

enum { SOFT = 1, FORCE = 2 };

int main(int count, char **arguments)
{
	unsigned found = options(count, arguments, "sf", "[-sf] FILE NAME");
	if (count - optind != 2)
		usage("[-sf] FILE NAME");
	const char *from = arguments[optind], *to = arguments[optind + 1];
	char *whole = is_folder(to) ? joined(to, last_name(from)) : strdup(to);
	if (found & FORCE)
		unlink(whole);
	if (found & SOFT ? symlink(from, whole) : link(from, whole))
		complain(whole);
	return finished();
}
