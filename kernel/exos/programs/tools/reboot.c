/* Stops the machine, and asks whoever runs it to begin again. */
#include "tool.h"

#include <exos/process.h>

int main(int count, char **arguments)
{
	options(count, arguments, "", "");
	if (optind < count)
		usage("");
	sync();
	exos_stop(EXOS_AGAIN);
	return complain("the machine");
}
