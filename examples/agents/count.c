/* count.c: an agent that counts system calls, and prints a table when the last process has ended.
 *
 *     postern cc -O2 count.c -o count.px
 *     postern interpose count.px -- make
 */
#include "names.h"
#include <postern/agent.h>
#include <stdio.h>
#include <string.h>

static unsigned long counts[CALLS + 1];

int pt_agent(struct pt_call *call)
{
	unsigned long at = call->number < CALLS ? call->number : CALLS;
	__atomic_fetch_add(&counts[at], 1, __ATOMIC_RELAXED);
	return PT_PASS;
}

static void row(unsigned long count, const char *name)
{
	char line[80];
	int length = snprintf(line, sizeof line, "%10lu  %s\n", count, name);
	pt_print(line, length);
}

void pt_agent_end(void)
{
	unsigned long total = 0;
	for (;;) {
		unsigned long most = 0;
		for (unsigned long at = 0; at <= CALLS; at++)
			if (counts[at] > counts[most])
				most = at;
		if (counts[most] == 0)
			break;
		const char *name = call_name(most);
		row(counts[most], name ? name : "others");
		total += counts[most];
		counts[most] = 0;
	}
	row(total, "in all");
}
