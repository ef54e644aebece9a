/* deny.c: an agent that refuses system calls by name, and says what was tried.
 *
 *     postern cc -O2 deny.c -o deny.px
 *     postern interpose deny.px unlink unlinkat=EACCES -- rm file
 *
 * Without an error's name it is EPERM. This keeps programs from what they do by mistake; a program
 * that means to can go around it. */
#include "names.h"
#include <postern/agent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Errors by call, positive; 0: it is made. */
static short refused[CALLS];

static const struct {
	const char *name;
	short number;
} errors[] = {
	{"EPERM", EPERM},   {"ENOENT", ENOENT}, {"EIO", EIO},       {"EAGAIN", EAGAIN},
	{"ENOMEM", ENOMEM}, {"EACCES", EACCES}, {"EINVAL", EINVAL}, {"ENOSPC", ENOSPC},
	{"EROFS", EROFS},   {"ENOSYS", 38},
};

static void say(const char *what, const char *which)
{
	char line[160];
	int length = snprintf(line, sizeof line, "deny: %s %s\n", what, which);
	pt_print(line, length < (int)sizeof line ? length : (int)sizeof line - 1);
}

static short error_of(const char *name)
{
	for (unsigned at = 0; at < sizeof errors / sizeof errors[0]; at++)
		if (strcmp(errors[at].name, name) == 0)
			return errors[at].number;
	say("no such error:", name);
	return EPERM;
}

void pt_agent_begin(void)
{
	char rule[64];
	for (unsigned number = 0; pt_argument(number, rule, sizeof rule) >= 0; number++) {
		char *equals = strchr(rule, '=');
		short error = equals ? error_of(equals + 1) : EPERM;
		if (equals)
			*equals = 0;
		unsigned long at = 0;
		while (at < CALLS && (!call_names[at] || strcmp(call_names[at], rule) != 0))
			at++;
		if (at < CALLS)
			refused[at] = error;
		else
			say("no such call:", rule);
	}
}

int pt_agent(struct pt_call *call)
{
	if (call->number >= CALLS || !refused[call->number])
		return PT_PASS;
	char which[64];
	snprintf(which, sizeof which, "%s by process %u", call_names[call->number], pt_process());
	say("refused", which);
	call->result = -refused[call->number];
	return PT_ANSWER;
}
