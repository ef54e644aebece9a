/* The processes that there are: numbers, state (N new, R runs, T stopped, Z ended), slices that they had
   and their children, pages that they have. */
#include "processes.h"

int main(int count, char **arguments)
{
	static struct process all[EXOS_PROCESSES];
	options(count, arguments, "", "");
	if (optind < count)
		usage("");
	int processes = processes_now(all);
	puts("  PID  PPID S   SLICES CHILDREN  PAGES NAME");
	for (struct process *each = all; each < all + processes; each++)
		printf("%5u %5u %c %8llu %8llu %6u %s\n", each->pid, each->parent, state_letter(each->state),
		       (unsigned long long)each->usage.slices, (unsigned long long)each->usage.children, each->usage.pages, each->name);
	return finished();
}
