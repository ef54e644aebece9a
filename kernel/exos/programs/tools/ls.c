/* What the archive has. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int main(void)
{
	DIR *folder = opendir("/");
	struct dirent *entry;
	if (!folder) {
		fprintf(stderr, "ls: %s\n", strerror(errno));
		return 1;
	}
	while ((entry = readdir(folder))) {
		struct stat status;
		if (stat(entry->d_name, &status) == 0)
			printf("%8ld %s\n", (long)status.st_size, entry->d_name);
	}
	closedir(folder);
	return 0;
}
