/* Files that are changed now: made, if they are not there; -c: not made. */
#include "tool.h"

#include <sys/time.h>

int main(int count, char **arguments)
{
	unsigned found = options(count, arguments, "c", "[-c] FILE...");
	if (optind == count)
		usage("[-c] FILE...");
	for (int at = optind; at < count; at++) {
		if (utimes(arguments[at], NULL) == 0)
			continue;
		if (errno == ENOENT && found)
			continue;
		int file = errno == ENOENT ? open(arguments[at], O_WRONLY | O_CREAT, 0666) : -1;
		if (file < 0)
			complain(arguments[at]);
		else
			close(file);
	}
	return finished();
}
