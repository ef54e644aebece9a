/* Its arguments as a format says: %s %b %c %d %i %u %o %x %X %e %f %g %%, and escapes. The format is used
   again as long as there are arguments. */
#include "tool.h"

#include <ctype.h>

static char **argument;

static const char *take(void)
{
	return *argument ? *argument++ : NULL;
}

/* An escape behind its backslash; where it ends. */
static const char *escape(const char *at)
{
	static const char LETTERS[] = "abfnrtv\\\"", BYTES[] = "\a\b\f\n\r\t\v\\\"";
	const char *letter = *at ? strchr(LETTERS, *at) : NULL;
	if (letter) {
		putchar(BYTES[letter - LETTERS]);
		return at + 1;
	}
	if (*at >= '0' && *at <= '7') {
		int value = 0;
		for (int each = 0; each < 3 && *at >= '0' && *at <= '7'; each++)
			value = 8 * value + *at++ - '0';
		putchar(value);
		return at;
	}
	putchar('\\');
	return at;
}

static const char *with_escapes(const char *text)
{
	while (*text)
		if (*text == '\\')
			text = escape(text + 1);
		else
			putchar(*text++);
	return text;
}

static long long number(const char *text)
{
	char *end;
	if (!text)
		return 0;
	if (*text == '"' || *text == '\'')
		return (unsigned char)text[1];
	errno = 0;
	long long value = *text == '-' ? strtoll(text, &end, 0) : (long long)strtoull(text, &end, 0);
	if (end == text || *end)
		complain_words(text, "it is no number");
	return value;
}

static const char *directive(const char *at)
{
	char format[40];
	size_t length = 1 + strspn(at + 1, "-+ #0");
	while (at[length] && strchr("0123456789.", at[length]))
		length++;
	char what = at[length];
	if (length > 20 || !what || !strchr("sbcdiuoxXefgEG%", what)) {
		complain_words(at, "no such directive");
		exit(1);
	}
	memcpy(format, at, length);
	const char *end = strchr("diuoxX", what) ? "ll" : "";
	sprintf(format + length, "%s%c", end, what == 'b' ? 's' : what);
	const char *text = what == '%' ? NULL : take();
	if (what == '%')
		putchar('%');
	else if (what == 'b')
		with_escapes(text ? text : "");
	else if (what == 's')
		printf(format, text ? text : "");
	else if (what == 'c') {
		if (text && *text)
			printf(format, *text);
	} else if (strchr("efgEG", what))
		printf(format, text ? strtod(text, NULL) : 0.0);
	else
		printf(format, number(text));
	return at + length + 1;
}

int main(int count, char **arguments)
{
	tool_name = "printf";
	if (count < 2)
		usage("FORMAT [WORD...]");
	argument = arguments + 2;
	char **before;
	do {
		before = argument;
		for (const char *at = arguments[1]; *at;)
			if (*at == '\\')
				at = escape(at + 1);
			else if (*at == '%')
				at = directive(at);
			else
				putchar(*at++);
	} while (*argument && argument != before);
	return finished();
}
