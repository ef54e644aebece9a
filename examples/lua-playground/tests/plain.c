/* Runs the script in a file with the plain build of script.c, and prints why it ended. */
#include <stdio.h>
#include <stdlib.h>

int script_run(const char *text, unsigned long size, const char *name);
const char *script_message(void);

int main(int argc, char **argv)
{
	static char text[1 << 20];
	FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
	if (!file)
		return 2;
	size_t size = fread(text, 1, sizeof text, file);
	if (script_run(text, size, "@script"))
		printf("%s\n", script_message());
	return 0;
}
