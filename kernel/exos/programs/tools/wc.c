/* Lines, words and bytes of what comes in. */
#include <ctype.h>
#include <stdio.h>

int main(void)
{
	long lines = 0, words = 0, bytes = 0;
	int inside = 0, byte;
	while ((byte = getchar()) != EOF) {
		bytes++;
		lines += byte == '\n';
		if (isspace(byte)) {
			inside = 0;
		} else if (!inside) {
			inside = 1;
			words++;
		}
	}
	printf("%ld %ld %ld\n", lines, words, bytes);
	return 0;
}
