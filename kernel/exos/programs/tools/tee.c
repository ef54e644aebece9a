/* What comes in, to files as well: -a behind what they have. */
#include "tool.h"

enum { FILES = 32 };

int main(int count, char **arguments)
{
	unsigned behind = options(count, arguments, "a", "[-a] FILE...");
	int files[FILES] = {STDOUT_FILENO}, many = 1;
	static char bytes[8192];
	ssize_t length;
	for (int at = optind; at < count && many < FILES; at++) {
		int file = open(arguments[at], O_WRONLY | O_CREAT | (behind ? O_APPEND : O_TRUNC), 0666);
		if (file < 0)
			complain(arguments[at]);
		else
			files[many++] = file;
	}
	while ((length = read(STDIN_FILENO, bytes, sizeof bytes)) > 0 || (length < 0 && errno == EINTR))
		for (int each = 0; each < many && length > 0; each++)
			if (put_all(files[each], bytes, length))
				complain("output");
	return finished();
}
