/* All names below folders: -name PATTERN, -type f, d or l. */
#include "tool.h"

#include <fnmatch.h>

static const char *pattern;
static char type;

static void below(const char *path)
{
	struct stat status;
	if (lstat(path, &status)) {
		complain(path);
		return;
	}
	char kind = S_ISDIR(status.st_mode) ? 'd' : S_ISLNK(status.st_mode) ? 'l' : 'f';
	if ((!type || kind == type) && (!pattern || fnmatch(pattern, last_name(path), 0) == 0))
		puts(path);
	struct names names;
	if (kind != 'd' || names_in(path, &names))
		return;
	for (int each = 0; each < names.count; each++) {
		char *whole = joined(path, names.name[each]);
		below(whole);
		free(whole);
	}
	names_free(&names);
}

int main(int count, char **arguments)
{
	int first = 1, at;
	tool_name = "find";
	for (at = 1; at < count && arguments[at][0] != '-'; at++)
		continue;
	int folders = at;
	for (; at < count; at += 2) {
		if (at + 1 < count && !strcmp(arguments[at], "-name"))
			pattern = arguments[at + 1];
		else if (at + 1 < count && !strcmp(arguments[at], "-type"))
			type = arguments[at + 1][0];
		else
			usage("[FOLDER...] [-name PATTERN] [-type f|d|l]");
	}
	if (folders == first)
		below(".");
	for (; first < folders; first++)
		below(arguments[first]);
	return finished();
}
