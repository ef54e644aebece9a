/* Lines that are like the one before them only once: -c with how many, -d those that are there more
   than once, -u those that are there once. */
#include "tool.h"

enum { COUNT = 1, DOUBLE = 2, SINGLE = 4 };

static unsigned found;

static void tell(const char *line, long many)
{
	if (!many || (found & DOUBLE && many < 2) || (found & SINGLE && many > 1))
		return;
	if (found & COUNT)
		printf("%7ld ", many);
	puts(line);
}

int main(int count, char **arguments)
{
	found = options(count, arguments, "cdu", "[-cdu] [FILE]");
	FILE *file = input(optind < count ? arguments[optind] : "-");
	char *line = NULL, *before = NULL;
	size_t room = 0;
	ssize_t length;
	long many = 0;
	while (file && (length = next_line(file, &line, &room)) > 0) {
		if (line[length - 1] == '\n')
			line[length - 1] = '\0';
		if (before && !strcmp(before, line)) {
			many++;
			continue;
		}
		tell(before, many);
		free(before);
		before = strdup(line);
		many = 1;
	}
	tell(before, many);
	return finished();
}
