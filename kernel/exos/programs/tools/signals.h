/* Signals by name, and `kill` with its words: as a program, and as a command of the shell. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct { const char *name; int number; } SIGNALS[] = {
	{"HUP", SIGHUP}, {"INT", SIGINT}, {"QUIT", SIGQUIT}, {"ILL", SIGILL}, {"TRAP", SIGTRAP}, {"ABRT", SIGABRT},
	{"BUS", SIGBUS}, {"FPE", SIGFPE}, {"KILL", SIGKILL}, {"USR1", SIGUSR1}, {"SEGV", SIGSEGV}, {"USR2", SIGUSR2},
	{"PIPE", SIGPIPE}, {"ALRM", SIGALRM}, {"TERM", SIGTERM}, {"CHLD", SIGCHLD}, {"CONT", SIGCONT}, {"STOP", SIGSTOP},
	{"TSTP", SIGTSTP},
};

/* A signal's number, by its name or as it is; below zero: there is none. */
static inline int signal_number(const char *name)
{
	char *end;
	if (isdigit((unsigned char)*name)) {
		long number = strtol(name, &end, 10);
		return *end || number > 63 ? -1 : (int)number;
	}
	if (!strncasecmp(name, "SIG", 3))
		name += 3;
	for (size_t each = 0; each < sizeof SIGNALS / sizeof *SIGNALS; each++)
		if (!strcasecmp(SIGNALS[each].name, name))
			return SIGNALS[each].number;
	return -1;
}

/* A signal's name; NULL: it has none. */
static inline const char *signal_name(int number)
{
	for (size_t each = 0; each < sizeof SIGNALS / sizeof *SIGNALS; each++)
		if (SIGNALS[each].number == number)
			return SIGNALS[each].name;
	return NULL;
}

/* kill [-SIGNAL | -s SIGNAL] PID..., kill -l. */
static inline int kill_by_words(char **word, int count, int (*complain)(const char *what, const char *why))
{
	int number = SIGTERM, at = 1, failed = 0;
	if (count == 2 && !strcmp(word[1], "-l")) {
		for (size_t each = 0; each < sizeof SIGNALS / sizeof *SIGNALS; each++)
			printf("%2d %s\n", SIGNALS[each].number, SIGNALS[each].name);
		return 0;
	}
	if (count > 1 && word[1][0] == '-' && word[1][1]) {
		const char *name = word[1] + 1;
		at++;
		if (!strcmp(name, "s") && count > 2)
			name = word[at++];
		if (strcmp(name, "-") && (number = signal_number(name)) < 0)
			return complain(name, "no such signal");
	}
	if (at == count)
		return complain("kill", "kill [-SIGNAL] PID...");
	for (; at < count; at++) {
		char *end;
		long pid = strtol(word[at], &end, 10);
		if (*end || end == word[at])
			failed = complain(word[at], "it is no process's number");
		else if (kill((pid_t)pid, number))
			failed = complain(word[at], strerror(errno));
	}
	return failed;
}

#endif
