/* Files in memory: ramd [NAME [PAGES]]. */
#include <stdio.h>
#include <stdlib.h>

#include <exos/files.h>

int main(int count, char **words)
{
	const char *name = count > 1 ? words[1] : "/tmp";
	if (exos_files_in_memory(name, count > 2 ? strtoul(words[2], NULL, 10) : 16384) == 0)
		return 0;
	perror("ramd");
	return 1;
}
