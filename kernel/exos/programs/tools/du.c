/* What files take, in KiB: of each folder; -s only of those that are named, -a of files, too. */
#include "tool.h"

enum { SUM = 1, ALL = 2 };

static unsigned found;

static long long taken(const char *path, int top)
{
	struct stat status;
	if (lstat(path, &status)) {
		complain(path);
		return 0;
	}
	long long sum = (long long)status.st_blocks * 512;
	struct names names;
	int folder = S_ISDIR(status.st_mode);
	if (folder && names_in(path, &names) == 0) {
		for (int each = 0; each < names.count; each++) {
			char *whole = joined(path, names.name[each]);
			sum += taken(whole, 0);
			free(whole);
		}
		names_free(&names);
	}
	if (top || (folder && !(found & SUM)) || found & ALL)
		printf("%lld\t%s\n", (sum + 1023) / 1024, path);
	return sum;
}

int main(int count, char **arguments)
{
	found = options(count, arguments, "sa", "[-sa] [NAME...]");
	if (optind == count)
		taken(".", 1);
	for (int at = optind; at < count; at++)
		taken(arguments[at], 1);
	return finished();
}
