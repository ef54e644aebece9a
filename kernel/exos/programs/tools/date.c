/* What time it is: +FORMAT as strftime has it; -d @SECONDS another time. All is UTC. */
#include "tool.h"

#include <time.h>

int main(int count, char **arguments)
{
	const char *format = "%a %b %e %H:%M:%S UTC %Y";
	time_t now = time(NULL);
	char text[512];
	int letter;
	tool_name = "date";
	opterr = 0;
	while ((letter = getopt(count, arguments, "ud:")) != -1) {
		if (letter == 'd' && *optarg == '@')
			now = (time_t)atoll(optarg + 1);
		else if (letter != 'u')
			usage("[-u] [-d @SECONDS] [+FORMAT]");
	}
	if (optind < count && arguments[optind][0] == '+')
		format = arguments[optind] + 1;
	text[0] = '\0';
	strftime(text, sizeof text, format, gmtime(&now));
	puts(text);
	return finished();
}
