/* Files of the disk, under `/`: fsd [-fF] [-c PAGES]: -f makes a file system if there is none, -F anew in
   any case, -c says how many pages the cache has. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <exos/disk.h>

int main(int count, char **words)
{
	struct exos_disk_files how = { .name = "/" };
	for (int option; (option = getopt(count, words, "fFc:")) != -1;) {
		switch (option) {
		case 'f':
			how.make = EXOS_MAKE_MISSING;
			break;
		case 'F':
			how.make = EXOS_MAKE_ANEW;
			break;
		case 'c':
			how.frames = strtoul(optarg, NULL, 10);
			break;
		default:
			fputs("usage: fsd [-fF] [-c PAGES]\n", stderr);
			return 2;
		}
	}
	if (exos_files_on_disk(&how) == 0)
		return 0; /* it was unmounted */
	if (errno == ENODEV)
		fputs("fsd: there is no disk\n", stderr);
	else if (errno != EINVAL && errno != EIO)
		perror("fsd"); /* others were said already */
	return 1;
}
