/* Takes empty folders away. */
#include "tool.h"

int main(int count, char **arguments)
{
	options(count, arguments, "", "NAME...");
	if (optind == count)
		usage("NAME...");
	for (int at = optind; at < count; at++)
		if (rmdir(arguments[at]))
			complain(arguments[at]);
	return finished();
}
