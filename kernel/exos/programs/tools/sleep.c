/* Waits so many seconds, which need not be whole. */
#include "tool.h"

int main(int count, char **arguments)
{
	char *end;
	options(count, arguments, "", "SECONDS");
	if (optind == count)
		usage("SECONDS");
	double seconds = strtod(arguments[optind], &end);
	if (*end || seconds < 0)
		return complain_words(arguments[optind], "it is no time");
	sleep((unsigned)seconds);
	usleep((useconds_t)((seconds - (unsigned)seconds) * 1e6));
	return 0;
}
