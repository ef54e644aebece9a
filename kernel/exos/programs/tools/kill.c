/* Signals for processes. */
#include "signals.h"

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "kill: %s: %s\n", what, why);
	return 1;
}

int main(int count, char **arguments)
{
	return kill_by_words(arguments, count, complain);
}
