/* families.c: an agent that refuses sockets of one family by its number. */
#include <postern/agent.h>

enum { SOCKET = 41, INTERNET = 2, NO_FAMILY = 97 };

int pt_agent(struct pt_call *call)
{
	if (call->number != SOCKET || call->arguments[0] != INTERNET)
		return PT_PASS;
	call->result = -NO_FAMILY;
	return PT_ANSWER;
}
