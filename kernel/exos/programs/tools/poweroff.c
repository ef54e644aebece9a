/* Stops the machine, when what was written is on its disk. */
#include "tool.h"

#include <exos/process.h>

int main(int count, char **arguments)
{
	options(count, arguments, "", "");
	if (optind < count)
		usage("");
	sync();
	exos_stop(0);
	return complain("the machine");
}
