/* Lines, words and bytes of files, or of what comes in: -l, -w, -c only those. */
#include "tool.h"

#include <ctype.h>

enum { LINES = 1, WORDS = 2, BYTES = 4 };

struct count {
	long of[3];
};

static unsigned found;

static struct count counted(FILE *file)
{
	struct count count = {0};
	int inside = 0, byte;
	while ((byte = getc(file)) != EOF) {
		count.of[2]++;
		count.of[0] += byte == '\n';
		if (isspace(byte)) {
			inside = 0;
		} else if (!inside) {
			inside = 1;
			count.of[1]++;
		}
	}
	return count;
}

/* As wide as GNU's: for what comes in 7, for files as many digits as all their bytes. */
static void print(const struct count *count, const char *name, int width)
{
	const char *between = "";
	for (int each = 0; each < 3; each++)
		if (found & 1 << each) {
			printf("%s%*ld", between, width, count->of[each]);
			between = " ";
		}
	if (name)
		printf(" %s", name);
	putchar('\n');
}

int main(int count, char **arguments)
{
	struct count all = {0};
	found = options(count, arguments, "lwc", "[-lwc] [FILE...]");
	if (!found)
		found = LINES | WORDS | BYTES;
	int alone = !(found & (found - 1)), files = count - optind;
	long bytes = 0;
	for (int at = optind; at < count; at++) {
		struct stat status;
		if (stat(arguments[at], &status) == 0 && S_ISREG(status.st_mode))
			bytes += status.st_size;
	}
	int width = 1;
	for (long left = bytes; left >= 10; left /= 10)
		width++;
	if (files == 0) {
		struct count one = counted(stdin);
		print(&one, NULL, alone ? 1 : 7);
		return finished();
	}
	if (alone && files == 1)
		width = 1;
	for (int at = optind; at < count; at++) {
		FILE *file = input(arguments[at]);
		if (!file)
			continue;
		struct count one = counted(file);
		print(&one, arguments[at], width);
		for (int each = 0; each < 3; each++)
			all.of[each] += one.of[each];
		done_with(file);
	}
	if (files > 1)
		print(&all, "total", width);
	return finished();
}
