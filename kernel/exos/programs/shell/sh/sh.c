/* A small shell: what POSIX's is, as far as scripts of some lines need it. It is a program like
   others: all that it does is fork, exec, pipe, open, dup2 and wait. */
#include "sh.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef __exos__
#include <exos/process.h>
#endif

extern char **environ;

struct shell shell;

int complain(const char *what, const char *why)
{
	fflush(stdout);
	fprintf(stderr, "sh: %s: %s\n", what, why);
	return 1;
}

static int usage(void)
{
	fputs("sh: sh [-aCeflnux] [-o NAME] [-c TEXT | FILE] [WORD...]\n", stderr);
	return 2;
}

int main(int count, char **arguments)
{
	int at = 1, reads_text = 0, begins = 0;
#ifdef __exos__
	/* For copies of copies of it, which have the same limit. */
	exos_room(1024);
#endif
	shell.self = getpid();
	shell.name = count ? arguments[0] : "sh";
	import_variables(environ);
	char number[16];
	snprintf(number, sizeof number, "%d", (int)getppid());
	set_variable("PPID", number);
	for (; at < count && arguments[at][0] == '-' && arguments[at][1]; at++) {
		for (const char *letter = arguments[at] + 1; *letter; letter++)
			switch (*letter) {
			case 'c': reads_text = 1; break;
			case 's': case 'i': break;
			case 'l': begins = 1; break;
			case 'o':
				if (at + 1 == count || !set_named_option(arguments[++at], 1))
					return usage();
				letter = "o";
				break;
			default:
				if (!set_option(*letter, 1))
					return usage();
			}
	}
	if (reads_text) {
		if (at == count)
			return usage();
		const char *text = arguments[at++];
		if (at < count)
			shell.name = arguments[at++];
		shell.arguments = arguments + at;
		shell.count = count - at;
		leave_shell(run_input(input_of_text(text)));
	}
	if (at < count) {
		int file = open(arguments[at], O_RDONLY);
		if (file < 0) {
			complain(arguments[at], strerror(errno));
			return 127;
		}
		/* Out of the way of numbers that scripts use. */
		int high = fcntl(file, F_DUPFD, 10);
		if (high >= 0) {
			close(file);
			file = high;
		}
		fcntl(file, F_SETFD, FD_CLOEXEC);
		shell.name = arguments[at++];
		shell.arguments = arguments + at;
		shell.count = count - at;
		leave_shell(run_input(input_of_file(file)));
	}
	if (!isatty(STDIN_FILENO))
		leave_shell(run_input(input_of_file(STDIN_FILENO)));
	shell.asks = 1;
	signal(SIGINT, SIG_IGN);
	/* The machine has begun with this shell: first what whoever set it up wants done then. */
	if (begins)
		run_text("export HOME=\"${HOME:-/}\"\n"
			 "if [ -f /etc/rc ]; then . /etc/rc; elif [ -f /bin/rc ]; then . /bin/rc; fi");
	leave_shell(run_input(input_of_terminal()));
}
