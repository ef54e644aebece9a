/* When it ends, all that was written is on the disk; with names, those files. */
#include "tool.h"

int main(int count, char **arguments)
{
	options(count, arguments, "", "[FILE...]");
	if (optind == count)
		sync();
	for (int at = optind; at < count; at++) {
		int file = open(arguments[at], O_RDONLY);
		if (file < 0 || fsync(file))
			complain(arguments[at]);
		if (file >= 0)
			close(file);
	}
	return finished();
}
