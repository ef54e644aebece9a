/* Its arguments, on one line; -n: without its end. */
#include <stdio.h>
#include <string.h>

int main(int count, char **arguments)
{
	int ends = count < 2 || strcmp(arguments[1], "-n");
	for (int at = 2 - ends; at < count; at++)
		printf(at > 2 - ends ? " %s" : "%s", arguments[at]);
	if (ends)
		putchar('\n');
	return fflush(stdout) != 0;
}
