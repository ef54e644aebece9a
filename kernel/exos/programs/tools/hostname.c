/* What the machine is called. */
#include "tool.h"

int main(int count, char **arguments)
{
	char name[256];
	options(count, arguments, "", "");
	if (optind < count)
		usage("");
	if (gethostname(name, sizeof name))
		return complain("name");
	puts(name);
	return finished();
}
