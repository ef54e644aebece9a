/* The variables of a program: env [-i] [NAME=VALUE...] [COMMAND...]. */
#include "tool.h"

extern char **environ;

int main(int count, char **arguments)
{
	static char *none[] = {NULL};
	int at = 1;
	tool_name = "env";
	if (at < count && !strcmp(arguments[at], "-i")) {
		environ = none;
		at++;
	}
	for (; at < count && strchr(arguments[at], '='); at++)
		putenv(arguments[at]);
	if (at < count) {
		execvp(arguments[at], arguments + at);
		int status = errno == ENOENT ? 127 : 126;
		complain(arguments[at]);
		return status;
	}
	for (char **each = environ; *each; each++)
		puts(*each);
	return finished();
}
