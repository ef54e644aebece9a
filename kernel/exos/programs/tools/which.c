/* Where programs lie that are called by their names. */
#include "tool.h"

int main(int count, char **arguments)
{
	const char *path = getenv("PATH");
	options(count, arguments, "", "NAME...");
	if (optind == count)
		usage("NAME...");
	for (int at = optind; at < count; at++) {
		int found = strchr(arguments[at], '/') && access(arguments[at], X_OK) == 0;
		if (found)
			puts(arguments[at]);
		for (const char *folder = path ? path : "/bin"; *folder && !found && !strchr(arguments[at], '/');) {
			size_t length = strcspn(folder, ":");
			char *one = strndup(folder, length), *whole = joined(length ? one : ".", arguments[at]);
			found = access(whole, X_OK) == 0 && !is_folder(whole);
			if (found)
				puts(whole);
			free(one);
			free(whole);
			folder += length + (folder[length] == ':');
		}
		tool_failed |= !found;
	}
	return finished();
}
