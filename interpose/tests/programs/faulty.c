/* faulty.c: an agent that stores where nothing is when a program asks for its group. */
#include <postern/agent.h>

int pt_agent(struct pt_call *call)
{
	if (call->number == 111)
		*(volatile int *)8 = 1;
	return PT_PASS;
}
