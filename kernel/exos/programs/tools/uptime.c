/* How long the machine runs, and how many processes live. */
#include "tool.h"

#include <exos/process.h>

int main(int count, char **arguments)
{
	struct exos_machine machine;
	options(count, arguments, "", "");
	if (optind < count)
		usage("");
	exos_machine(&machine);
	unsigned long long seconds = machine.ticks / 1000;
	printf("up %llu:%02llu:%02llu, %u processes, %u processors\n", seconds / 3600, seconds / 60 % 60, seconds % 60,
	       (unsigned)exos_table()->living, machine.processors);
	return finished();
}
