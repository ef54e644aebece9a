/* Processes as the table and the books have them: what `ps` and `top` show. */
#ifndef PROCESSES_H
#define PROCESSES_H

#include "tool.h"

#include <exos/process.h>

struct process {
	unsigned pid, parent, state;
	struct exos_usage usage;
	/* Slices since it was looked at before. */
	uint64_t since;
	char name[17];
};

/* All that there are, by their numbers; how many. */
static inline int processes_now(struct process all[EXOS_PROCESSES])
{
	int count = 0;
	for (int each = 0; each < EXOS_PROCESSES; each++) {
		const volatile struct exos_process *record = &exos_table()->processes[each];
		struct process *process = &all[count];
		*process = (struct process){.pid = record->pid, .parent = record->parent, .state = record->state};
		if (record->state == EXOS_FREE || exos_usage((pid_t)process->pid, &process->usage))
			continue;
		for (int at = 0; at < 16; at++)
			process->name[at] = record->name[at];
		int at = count++;
		for (; at && all[at - 1].pid > all[at].pid; at--) {
			struct process other = all[at];
			all[at] = all[at - 1];
			all[at - 1] = other;
		}
	}
	return count;
}

static inline char state_letter(unsigned state)
{
	return state <= EXOS_ENDED ? "?NRTZ"[state] : '?';
}

#endif
