/* What is known of files. */
#include "tool.h"

#include <time.h>

static void when(const char *what, time_t time)
{
	char text[64];
	strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", gmtime(&time));
	printf("%s: %s\n", what, text);
}

int main(int count, char **arguments)
{
	options(count, arguments, "", "NAME...");
	if (optind == count)
		usage("NAME...");
	for (int at = optind; at < count; at++) {
		struct stat status;
		if (lstat(arguments[at], &status)) {
			complain(arguments[at]);
			continue;
		}
		const char *kind = S_ISDIR(status.st_mode) ? "folder" : S_ISLNK(status.st_mode) ? "link" :
			S_ISREG(status.st_mode) ? "file" : S_ISFIFO(status.st_mode) ? "pipe" : "device";
		printf("  File: %s\n  Size: %lld, blocks of 512: %lld, %s\n", arguments[at], (long long)status.st_size,
		       (long long)status.st_blocks, kind);
		printf(" Inode: %llu, links: %lu, mode: %04o\n", (unsigned long long)status.st_ino,
		       (unsigned long)status.st_nlink, (unsigned)status.st_mode & 07777);
		when("Modify", status.st_mtime);
		when("Change", status.st_ctime);
	}
	return finished();
}
