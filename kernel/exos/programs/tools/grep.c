/* Lines in which an expression is found: basic ones, -E extended, -F plain text; -i without regard
   to case, -v those in which it is not, -n with numbers, -c how many, -l names of files, -q nothing,
   -r in all files of folders, -h without names, -o what was found. */
#include "tool.h"

#include <regex.h>

enum { CASE = 1, NOT = 2, NUMBERS = 4, COUNT = 8, DEEP = 16, EXTENDED = 32, PLAIN = 64, NAMES = 128, QUIET = 256, BARE = 512, ONLY = 1024 };

#define WORDS "[-ivncrEFlqho] EXPRESSION [FILE...]"

static unsigned found;
static regex_t expression;
static int any;

/* An expression that finds a text as it is. */
static char *escaped(const char *text)
{
	char *all = need(2 * strlen(text) + 1), *to = all;
	for (; *text; text++) {
		if (strchr(".[]*^$\\", *text))
			*to++ = '\\';
		*to++ = *text;
	}
	*to = '\0';
	return all;
}

static void prefix(const char *name, long number)
{
	if (name)
		printf("%s:", name);
	if (found & NUMBERS)
		printf("%ld:", number);
}

static void pieces(const char *line, const char *name, long number)
{
	regmatch_t match;
	int flags = 0;
	while (*line && regexec(&expression, line, 1, &match, flags) == 0) {
		int length = match.rm_eo - match.rm_so;
		if (length) {
			prefix(name, number);
			printf("%.*s\n", length, line + match.rm_so);
		}
		line += match.rm_eo + !length;
		flags = REG_NOTBOL;
	}
}

static void lines(FILE *file, const char *told, const char *name)
{
	static char *line;
	static size_t room;
	long number = 0, count = 0;
	ssize_t length;
	while ((length = next_line(file, &line, &room)) > 0) {
		number++;
		if (line[length - 1] == '\n')
			line[--length] = '\0';
		if ((regexec(&expression, line, 0, NULL, 0) == 0) == !!(found & NOT))
			continue;
		any = 1;
		count++;
		if (found & (QUIET | NAMES))
			break;
		if (found & COUNT)
			continue;
		if (found & ONLY) {
			pieces(line, told, number);
			continue;
		}
		prefix(told, number);
		fwrite(line, 1, length, stdout);
		putchar('\n');
	}
	if (found & NAMES && count)
		puts(name);
	else if (found & COUNT && !(found & (QUIET | NAMES))) {
		if (told)
			printf("%s:", told);
		printf("%ld\n", count);
	}
}

static void one(const char *name, int told)
{
	if (found & DEEP && is_folder(name)) {
		struct names names;
		if (names_in(name, &names))
			return;
		for (int each = 0; each < names.count; each++) {
			char *whole = joined(name, names.name[each]);
			one(whole, !(found & BARE));
			free(whole);
		}
		names_free(&names);
		return;
	}
	FILE *file = input(name);
	if (!file)
		return;
	const char *shown = strcmp(name, "-") ? name : "(standard input)";
	lines(file, told ? shown : NULL, shown);
	done_with(file);
}

int main(int count, char **arguments)
{
	found = options(count, arguments, "ivncrEFlqho", WORDS);
	if (optind == count)
		usage(WORDS);
	char *text = found & PLAIN ? escaped(arguments[optind]) : arguments[optind];
	int flags = (found & EXTENDED ? REG_EXTENDED : 0) | (found & CASE ? REG_ICASE : 0);
	int wrong = regcomp(&expression, text, flags);
	if (wrong) {
		char why[128];
		regerror(wrong, &expression, why, sizeof why);
		complain_words(text, why);
		return 2;
	}
	int told = count - optind > 2 && !(found & BARE);
	if (optind + 1 == count)
		one(found & DEEP ? "." : "-", 0);
	for (int at = optind + 1; at < count; at++)
		one(arguments[at], told);
	int failed = finished();
	return failed && !(found & QUIET && any) ? 2 : !any;
}
