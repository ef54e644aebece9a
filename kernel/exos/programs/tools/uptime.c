/* How long the machine runs, in slices of its first processor, and how many processes live. */
#include "tool.h"

#include <exos/process.h>

int main(int count, char **arguments)
{
	struct exos_machine machine;
	options(count, arguments, "", "");
	if (optind < count)
		usage("");
	exos_machine(&machine);
	unsigned long long ticks = machine.ticks, second = sysconf(_SC_CLK_TCK) > 0 ? sysconf(_SC_CLK_TCK) : 100;
	printf("up %llu:%02llu:%02llu, %llu slices, %u processes, %u processors\n", ticks / second / 3600, ticks / second / 60 % 60,
	       ticks / second % 60, ticks, (unsigned)exos_table()->living, machine.processors);
	return finished();
}
