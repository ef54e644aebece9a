/* Takes names away; -r folders with all that is in them, -f without a word if they are not there. */
#include "tool.h"

enum { DEEP = 1, FORCE = 2 };

static unsigned found;

static void take(const char *path)
{
	struct stat status;
	if (lstat(path, &status)) {
		if (errno != ENOENT || !(found & FORCE))
			complain(path);
		return;
	}
	if (!S_ISDIR(status.st_mode)) {
		if (unlink(path))
			complain(path);
		return;
	}
	if (!(found & DEEP)) {
		errno = EISDIR;
		complain(path);
		return;
	}
	struct names names;
	if (names_in(path, &names))
		return;
	for (int each = 0; each < names.count; each++) {
		char *whole = joined(path, names.name[each]);
		take(whole);
		free(whole);
	}
	names_free(&names);
	if (rmdir(path))
		complain(path);
}

int main(int count, char **arguments)
{
	found = options(count, arguments, "rf", "[-rf] NAME...");
	if (optind == count && !(found & FORCE))
		usage("[-rf] NAME...");
	for (int at = optind; at < count; at++)
		take(arguments[at]);
	return finished();
}
