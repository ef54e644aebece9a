/* The last lines of files: -n so many, -n +N from one on, -c bytes. */
#include "tool.h"

static long amount = 10;
static int from_begin, in_bytes;

/* All of a file. */
static char *whole(FILE *file, size_t *length)
{
	size_t room = 4096;
	char *all = need(room);
	for (*length = 0;;) {
		*length += fread(all + *length, 1, room - *length, file);
		if (*length < room)
			return all;
		char *more = need(2 * room);
		memcpy(more, all, room);
		free(all);
		all = more;
		room *= 2;
	}
}

static void some(FILE *file)
{
	size_t length, at;
	char *all = whole(file, &length);
	long left = amount;
	if (in_bytes) {
		size_t many = (size_t)left;
		at = from_begin ? (many ? many - 1 : 0) : many < length ? length - many : 0;
	} else if (from_begin) {
		for (at = 0; at < length && left > 1; at++)
			left -= all[at] == '\n';
	} else {
		/* The newline at the end ends the last line. */
		left += length && all[length - 1] == '\n';
		for (at = length; at > 0; at--)
			if (all[at - 1] == '\n' && left-- == 1)
				break;
		if (!amount)
			at = length;
	}
	if (at < length)
		fwrite(all + at, 1, length - at, stdout);
	free(all);
}

int main(int count, char **arguments)
{
	int letter, shown = 0;
	tool_name = "tail";
	opterr = 0;
	if (count > 1 && arguments[1][0] == '-' && arguments[1][1] >= '0' && arguments[1][1] <= '9') {
		amount = atol(arguments[1] + 1);
		optind = 2;
	}
	while ((letter = getopt(count, arguments, "n:c:")) != -1) {
		if (letter != 'n' && letter != 'c')
			usage("[-n LINES | -c BYTES] [FILE...]");
		in_bytes = letter == 'c';
		from_begin = *optarg == '+';
		amount = labs(atol(optarg));
	}
	if (optind == count)
		some(stdin);
	for (int at = optind; at < count; at++) {
		FILE *file = input(arguments[at]);
		if (!file)
			continue;
		if (count - optind > 1)
			printf("%s==> %s <==\n", shown ? "\n" : "", arguments[at]);
		shown = 1;
		some(file);
		done_with(file);
	}
	return finished();
}
