/* Its arguments, on one line. */
#include <stdio.h>

int main(int count, char **arguments)
{
	for (int at = 1; at < count; at++)
		printf(at > 1 ? " %s" : "%s", arguments[at]);
	putchar('\n');
	return 0;
}
