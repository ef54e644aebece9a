/* Bytes as numbers, sixteen on a line, and as text. */
#include "tool.h"

#include <ctype.h>

int main(int count, char **arguments)
{
	options(count, arguments, "", "[FILE]");
	FILE *file = input(optind < count ? arguments[optind] : "-");
	unsigned char bytes[16];
	unsigned long at = 0;
	size_t length;
	while (file && (length = fread(bytes, 1, sizeof bytes, file)) > 0) {
		printf("%08lx:", at);
		for (size_t each = 0; each < sizeof bytes; each++) {
			if (each % 2 == 0)
				putchar(' ');
			if (each < length)
				printf("%02x", bytes[each]);
			else
				fputs("  ", stdout);
		}
		fputs("  ", stdout);
		for (size_t each = 0; each < length; each++)
			putchar(isprint(bytes[each]) ? bytes[each] : '.');
		putchar('\n');
		at += length;
	}
	return finished();
}
