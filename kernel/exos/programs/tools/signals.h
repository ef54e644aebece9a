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
#include <unistd.h>

#ifdef __exos__
#include <exos/process.h>
#endif

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

#ifdef __exos__
/* All processes of a name but this one; how many there were, or below zero: one could not be reached. */
static inline int kill_named(const char *name, int number)
{
	int found = 0, failed = 0;
	for (int each = 0; each < EXOS_PROCESSES; each++) {
		const volatile struct exos_process *record = &exos_table()->processes[each];
		char its[17] = "";
		for (int at = 0; at < 16; at++)
			its[at] = record->name[at];
		unsigned pid = record->pid;
		if (record->state == EXOS_FREE || record->state == EXOS_ENDED || strncmp(its, name, 15) || pid == (unsigned)getpid())
			continue;
		found++;
		failed |= kill((pid_t)pid, number);
	}
	return failed ? -1 : found;
}
#else
static inline int kill_named(const char *name, int number)
{
	(void)name, (void)number;
	return 0;
}
#endif

/* kill [-SIGNAL | -s SIGNAL] PID | -GROUP | NAME..., kill -l [NUMBER]. */
static inline int kill_by_words(char **word, int count, int (*complain)(const char *what, const char *why))
{
	int number = SIGTERM, at = 1, failed = 0;
	if (count == 2 && !strcmp(word[1], "-l")) {
		for (size_t each = 0; each < sizeof SIGNALS / sizeof *SIGNALS; each++)
			printf("%2d %s\n", SIGNALS[each].number, SIGNALS[each].name);
		return 0;
	}
	if (count == 3 && !strcmp(word[1], "-l")) {
		/* A status of a process that a signal ended counts, too. */
		int ended = signal_number(word[2]), known = atoi(word[2]) > 128 ? atoi(word[2]) - 128 : ended;
		const char *name = signal_name(known);
		return name ? puts(name) < 0 : complain(word[2], "no such signal");
	}
	if (count > 1 && word[1][0] == '-' && word[1][1]) {
		const char *name = word[1] + 1;
		at++;
		if (!strcmp(name, "s") && count > 2)
			name = word[at++];
		if (strcmp(name, "-") && (number = signal_number(name)) < 0)
			return complain(name, "no such signal");
		at += strcmp(name, "-") && at < count && !strcmp(word[at], "--");
	}
	if (at == count)
		return complain("kill", "kill [-SIGNAL] PID | -GROUP | NAME...");
	for (; at < count; at++) {
		char *end;
		long pid = strtol(word[at], &end, 10);
		if (*end || end == word[at]) {
			int found = kill_named(word[at], number);
			if (found <= 0)
				failed = complain(word[at], found ? strerror(errno) : "there is no such process");
			continue;
		}
		if (kill((pid_t)pid, number))
			failed = complain(word[at], strerror(errno));
	}
	return failed;
}

#endif
