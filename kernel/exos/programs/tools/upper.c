/* What comes in, in capitals. */
#include <ctype.h>
#include <stdio.h>

int main(void)
{
	int byte;
	while ((byte = getchar()) != EOF)
		putchar(toupper(byte));
	return 0;
}
