/* Numbers from the first to the last, a line each: seq [FIRST [STEP]] LAST; -s what is between. */
#include "tool.h"

static const char *between = "\n";

static long number(const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);
	if (end == text || *end) {
		complain_words(text, "it is no whole number");
		exit(1);
	}
	return value;
}

int main(int count, char **arguments)
{
	int at = 1, any = 0;
	tool_name = "seq";
	if (count > 2 && !strcmp(arguments[1], "-s")) {
		between = arguments[2];
		at = 3;
	}
	if (count - at < 1 || count - at > 3)
		usage("[-s TEXT] [FIRST [STEP]] LAST");
	long first = count - at > 1 ? number(arguments[at]) : 1;
	long step = count - at > 2 ? number(arguments[at + 1]) : 1;
	long last = number(arguments[count - 1]);
	if (step == 0)
		return complain_words("0", "the step is nothing");
	for (long now = first; step > 0 ? now <= last : now >= last; now += step) {
		printf("%s%ld", any ? between : "", now);
		any = 1;
	}
	if (any)
		putchar('\n');
	return finished();
}
