/* Whether two files have the same bytes: 0, or 1 and where they begin to differ; -s without words. */
#include "tool.h"

int main(int count, char **arguments)
{
	unsigned quiet = options(count, arguments, "s", "[-s] FILE FILE");
	if (count - optind != 2)
		usage("[-s] FILE FILE");
	const char *left = arguments[optind], *right = arguments[optind + 1];
	FILE *one = input(left), *other = one ? input(right) : NULL;
	if (!one || !other)
		return 2;
	long at = 0, line = 1;
	for (;;) {
		int a = getc(one), b = getc(other);
		at++;
		if (a == b && a == EOF)
			return 0;
		if (a == EOF || b == EOF) {
			if (!quiet)
				fprintf(stderr, "cmp: EOF on %s after byte %ld\n", a == EOF ? left : right, at - 1);
			return 1;
		}
		if (a != b) {
			if (!quiet)
				printf("%s %s differ: byte %ld, line %ld\n", left, right, at, line);
			return 1;
		}
		line += a == '\n';
	}
}
