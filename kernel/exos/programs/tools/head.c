/* The first lines of files: -n so many, -c bytes. */
#include "tool.h"

static void some(FILE *file, long lines, long bytes)
{
	int byte;
	while ((bytes < 0 ? lines > 0 : bytes > 0) && (byte = getc(file)) != EOF) {
		putchar(byte);
		bytes -= bytes > 0;
		lines -= byte == '\n';
	}
}

int main(int count, char **arguments)
{
	long lines = 10, bytes = -1;
	int letter, shown = 0;
	tool_name = "head";
	opterr = 0;
	if (count > 1 && arguments[1][0] == '-' && arguments[1][1] >= '0' && arguments[1][1] <= '9') {
		lines = atol(arguments[1] + 1);
		optind = 2;
	}
	while ((letter = getopt(count, arguments, "n:c:")) != -1) {
		if (letter == 'n')
			lines = atol(optarg);
		else if (letter == 'c')
			bytes = atol(optarg);
		else
			usage("[-n LINES | -c BYTES] [FILE...]");
	}
	if (optind == count)
		some(stdin, lines, bytes);
	for (int at = optind; at < count; at++) {
		FILE *file = input(arguments[at]);
		if (!file)
			continue;
		if (count - optind > 1)
			printf("%s==> %s <==\n", shown ? "\n" : "", arguments[at]);
		shown = 1;
		some(file, lines, bytes);
		done_with(file);
	}
	return finished();
}
