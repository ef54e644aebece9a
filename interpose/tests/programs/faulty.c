/* faulty.c: an agent that stores where nothing is when a program asks for its session. */
#include <postern/agent.h>

static int *volatile nowhere = (int *)8;

int pt_agent(struct pt_call *call)
{
	if (call->number == 124)
		*nowhere = 1;
	return PT_PASS;
}
