/* Pages of the machine, 4 KiB each; -m in MiB. */
#include "tool.h"

#include <exos/process.h>

int main(int count, char **arguments)
{
	struct exos_machine machine;
	unsigned found = options(count, arguments, "m", "[-m]"), by = found ? 256 : 1;
	if (optind < count)
		usage("[-m]");
	exos_machine(&machine);
	printf("%10s %10s %10s\n%10u %10u %10u\n", "total", "used", "free", machine.pages / by,
	       (machine.pages - machine.free) / by, machine.free / by);
	return finished();
}
