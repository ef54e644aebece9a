/* What is done at signals and at the end, and how the shell ends. */
#include "sh.h"
#include "../../tools/signals.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 64 };

/* By their numbers, 0 for the end: NULL is as it was, an empty text is to ignore it. */
static char *actions[COUNT];
static volatile sig_atomic_t came[COUNT], any;

static void note(int number)
{
	came[number] = any = 1;
}

int has_traps(void)
{
	for (int each = 0; each < COUNT; each++)
		if (actions[each] && *actions[each])
			return 1;
	return 0;
}

int trap_is_due(void)
{
	for (int each = 1; any && each < COUNT; each++)
		if (came[each])
			return each;
	return 0;
}

/* Between two commands. What was to be returned stays what it was. */
void run_traps(void)
{
	static int runs;
	if (runs)
		return;
	runs = 1;
	for (int number; (number = trap_is_due());) {
		int status = shell.status;
		came[number] = 0;
		if (actions[number]) {
			char *text = copied(actions[number], strlen(actions[number]));
			run_text(text);
			free(text);
		}
		shell.status = status;
	}
	any = 0;
	runs = 0;
}

_Noreturn void leave_shell(int status)
{
	char *text = actions[0];
	actions[0] = NULL;
	if (text) {
		shell.failed = shell.returns = shell.breaks = shell.continues = 0;
		shell.status = status;
		run_text(text);
	}
	fflush(stdout);
	_exit(status & 255);
}

/* In a process that was forked for a part of a command: signals are as programs expect them, and what
   is ignored stays so. */
void become_child(void)
{
	if (shell.asks) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
	}
	shell.asks = 0;
	for (int each = 0; each < COUNT; each++) {
		if (!actions[each] || (each && !*actions[each]))
			continue;
		if (each)
			signal(each, SIG_DFL);
		free(actions[each]);
		actions[each] = NULL;
		came[each] = 0;
	}
}

static void list_traps(void)
{
	for (int each = 0; each < COUNT; each++) {
		if (!actions[each])
			continue;
		fputs("trap -- ", stdout);
		print_quoted(actions[each]);
		const char *name = each ? signal_name(each) : "EXIT";
		if (name)
			printf(" %s\n", name);
		else
			printf(" %d\n", each);
	}
}

/* trap [ACTION] SIGNAL...; without an action or with `-` signals are as they were. */
int trap_command(char **word, int count)
{
	int at = 1, failed = 0;
	char *end;
	if (at < count && !strcmp(word[at], "--"))
		at++;
	if (at == count) {
		list_traps();
		return 0;
	}
	const char *action = word[at];
	strtoul(action, &end, 10);
	if (count - at == 1 || (!*end && end != action) || !strcmp(action, "-"))
		action = NULL;
	at += action || !strcmp(word[at], "-");
	for (; at < count; at++) {
		int number = !strcmp(word[at], "EXIT") ? 0 : signal_number(word[at]);
		if (number < 0 || number == SIGKILL || number == SIGSTOP) {
			failed = complain(word[at], "it cannot be trapped");
			continue;
		}
		free(actions[number]);
		actions[number] = action ? copied(action, strlen(action)) : NULL;
		if (number)
			signal(number, !action ? SIG_DFL : *action ? note : SIG_IGN);
	}
	return failed;
}
