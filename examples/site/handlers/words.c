/* Counts the words of the body as it comes: nothing of it is kept. */
#include <libcgi.h>

int cgi_main(void)
{
	size_t size;
	unsigned long words = 0, bytes = 0;
	int inside = 0;
	for (const char *piece; (piece = cgi_body(&size)); bytes += size) {
		for (size_t i = 0; i < size; i++) {
			int letter = piece[i] != ' ' && piece[i] != '\n' && piece[i] != '\t';
			words += letter && !inside;
			inside = letter;
		}
	}
	if (size) {
		cgi_status(400);
		return cgi_puts("The text was cut off.\n") < 0;
	}
	return cgi_printf("%lu words, %lu bytes\n", words, bytes) < 0;
}
