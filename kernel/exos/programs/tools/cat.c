/* Files, or what comes in, one after the other. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int copy(int from, const char *name)
{
	char bytes[4096];
	ssize_t length;
	while ((length = read(from, bytes, sizeof bytes)) > 0)
		for (ssize_t done = 0; done < length;) {
			ssize_t now = write(STDOUT_FILENO, bytes + done, length - done);
			if (now < 0)
				return 1;
			done += now;
		}
	if (length < 0)
		fprintf(stderr, "cat: %s: %s\n", name, strerror(errno));
	return length < 0;
}

int main(int count, char **arguments)
{
	int failed = 0;
	if (count == 1)
		return copy(STDIN_FILENO, "input");
	for (int at = 1; at < count; at++) {
		int from = open(arguments[at], O_RDONLY);
		if (from < 0) {
			fprintf(stderr, "cat: %s: %s\n", arguments[at], strerror(errno));
			failed = 1;
			continue;
		}
		failed |= copy(from, arguments[at]);
		close(from);
	}
	return failed;
}
