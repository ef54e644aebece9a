/* seen.c: an agent that prints each call that has come back, with the process it was in: the first
 * process is 0. Calls of getsid have 4242 as their result. */
#include <postern/agent.h>
#include <stdio.h>

enum { GETSID = 124 };

static unsigned first;

int pt_agent(struct pt_call *call)
{
	unsigned none = 0;
	__atomic_compare_exchange_n(&first, &none, pt_process(), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	call->note = call->number + 1;
	return PT_PASS_AFTER;
}

void pt_agent_after(struct pt_call *call)
{
	char line[80];
	if (call->note != call->number + 1)
		pt_print("another's note\n", 15);
	if (call->number == GETSID)
		call->result = 4242;
	int length = snprintf(line, sizeof line, "%u %lu %ld\n", pt_process() - first, call->number, call->result);
	pt_print(line, length);
}
