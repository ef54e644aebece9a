/* What this system is called: -s its name, -n the machine's, -r the release, -v the version, -m the
   processor, -a all. */
#include "tool.h"

#include <sys/utsname.h>

int main(int count, char **arguments)
{
	struct utsname names;
	unsigned found = options(count, arguments, "snrvma", "[-snrvma]");
	const char *all[] = {names.sysname, names.nodename, names.release, names.version, names.machine};
	const char *between = "";
	if (uname(&names))
		return complain("names");
	if (!found)
		found = 1;
	for (int each = 0; each < 5; each++)
		if (found & (1u << each | 32)) {
			printf("%s%s", between, all[each]);
			between = " ";
		}
	putchar('\n');
	return finished();
}
