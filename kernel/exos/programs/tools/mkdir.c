/* Makes folders; -p with those above them, without a word if they are there. */
#include "tool.h"

static void make(char *path, int above)
{
	for (char *slash = above ? strchr(path + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		int failed = mkdir(path, 0777) && !is_folder(path);
		if (failed)
			complain(path);
		*slash = '/';
		if (failed)
			return;
	}
	if (mkdir(path, 0777) && !(above && is_folder(path)))
		complain(path);
}

int main(int count, char **arguments)
{
	unsigned found = options(count, arguments, "p", "[-p] NAME...");
	if (optind == count)
		usage("[-p] NAME...");
	for (int at = optind; at < count; at++)
		make(arguments[at], found);
	return finished();
}
