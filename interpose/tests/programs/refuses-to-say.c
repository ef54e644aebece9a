/* refuses-to-say.c: an agent that returns nothing that it may return when a program is executed. */
#include <postern/agent.h>

int pt_agent(struct pt_call *call)
{
	return call->number == 59 ? 77 : PT_PASS;
}
