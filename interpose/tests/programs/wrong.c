/* wrong.c: an agent that does what its argument says at a call of getsid: it loops, calls itself
 * without end, or is killed while it has a lock. */
#include <postern/agent.h>
#include <stdio.h>

enum { SOCKET = 41, KILL = 62, GETSID = 124 };

static char what[16];
static struct pt_lock lock;
static unsigned begun, done, died;

void pt_agent_begin(void)
{
	pt_argument(0, what, sizeof what);
}

static unsigned deep(unsigned depth);
/* The compiler makes no loop of it. */
static unsigned (*volatile again)(unsigned) = deep;

static unsigned deep(unsigned depth)
{
	return depth == ~0u ? 0 : again(depth + 1) * 3 + depth % 7;
}

int pt_agent(struct pt_call *call)
{
	int now = call->number == GETSID;
	/* Supervisors do not ask about that one. */
	if ((now || call->number == SOCKET) && what[0] == 'l')
		for (;;)
			__asm__ volatile("" ::: "memory");
	if (now && what[0] == 'd' && deep(0) == 1)
		return 7;
	if (pt_lock(&lock) == PT_OWNER_DIED) {
		died++;
		done = begun;
	}
	begun++;
	if (now) {
		struct pt_call kills = {KILL, {pt_process(), 9}, 0, 0};
		pt_syscall(&kills);
	}
	done++;
	pt_unlock(&lock);
	return PT_PASS;
}

void pt_agent_end(void)
{
	char line[80];
	pt_print(line, snprintf(line, sizeof line, "died: %u, whole: %d\n", died, begun == done && begun > 100));
}
