/* Numbers from the first to the last, a line each. */
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
	if (count < 2) {
		fputs("seq: seq [FIRST] LAST\n", stderr);
		return 1;
	}
	long first = count > 2 ? atol(arguments[1]) : 1, last = atol(arguments[count > 2 ? 2 : 1]);
	for (long at = first; at <= last; at++)
		printf("%ld\n", at);
	return 0;
}
