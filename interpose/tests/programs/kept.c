/* kept.c: an agent with a keeper, which is told when a program begins, and says how often. */
#include <postern/agent.h>

enum { READ = 0, WRITE = 1, DUP = 32 };

static unsigned told;

static void tell(void)
{
	struct pt_call call = {.number = WRITE, .arguments = {pt_keeper(), pt_address("x"), 1}};
	pt_syscall_now(&call);
}

void pt_agent_begin(void)
{
	struct pt_call call = {.number = DUP, .arguments = {1}};
	pt_keep(pt_syscall_now(&call));
	tell();
}

void pt_agent_program(void)
{
	tell();
}

void pt_agent_keep(void)
{
	static char byte;
	struct pt_call call = {.number = READ, .arguments = {0, pt_address(&byte), 1}};
	while (pt_syscall(&call) == 1)
		told++;
}

int pt_agent(struct pt_call *call)
{
	(void)call;
	return PT_PASS;
}

void pt_agent_end(void)
{
	char line[] = "told 0 times\n";
	line[5] += told;
	pt_print(line, sizeof line - 1);
}
