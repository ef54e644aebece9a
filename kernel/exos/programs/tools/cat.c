/* Files, or what comes in, one after the other; -n numbers the lines. */
#include "tool.h"

static void numbered(FILE *file)
{
	static char *line;
	static size_t room;
	static long number;
	ssize_t length;
	while ((length = next_line(file, &line, &room)) > 0) {
		printf("%6ld\t", ++number);
		fwrite(line, 1, length, stdout);
	}
}

static void one(const char *name, int numbers)
{
	if (numbers) {
		FILE *file = input(name);
		if (file) {
			numbered(file);
			done_with(file);
		}
		return;
	}
	int from = strcmp(name, "-") ? open(name, O_RDONLY) : STDIN_FILENO;
	int how = from < 0 ? -1 : copy_all(from, STDOUT_FILENO);
	if (how)
		complain(how == -1 ? name : "output");
	if (from > 0)
		close(from);
}

int main(int count, char **arguments)
{
	unsigned found = options(count, arguments, "n", "[-n] [FILE...]");
	if (optind == count)
		one("-", found);
	for (int at = optind; at < count; at++)
		one(arguments[at], found);
	return finished();
}
