/* Options: of the shell, by `set`, and of scripts, by `getopts`. */
#include "sh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct { char letter; const char *name; int *is; } OPTIONS[] = {
	{'a', "allexport", &shell.exports}, {'C', "noclobber", &shell.keeps}, {'e', "errexit", &shell.strict},
	{'f', "noglob", &shell.plain}, {'n', "noexec", &shell.reads}, {'u', "nounset", &shell.bound},
	{'x', "xtrace", &shell.traced},
};

enum { OPTION_COUNT = sizeof OPTIONS / sizeof *OPTIONS };

int set_option(char letter, int on)
{
	for (int each = 0; each < OPTION_COUNT; each++)
		if (OPTIONS[each].letter == letter)
			return *OPTIONS[each].is = on, 1;
	return 0;
}

int set_named_option(const char *name, int on)
{
	for (int each = 0; each < OPTION_COUNT; each++)
		if (!strcmp(OPTIONS[each].name, name))
			return set_option(OPTIONS[each].letter, on);
	return 0;
}

/* `$-`. */
void option_letters(char letters[16])
{
	for (int each = 0; each < OPTION_COUNT; each++)
		if (*OPTIONS[each].is)
			*letters++ = OPTIONS[each].letter;
	*letters = '\0';
}

void print_options(void)
{
	for (int each = 0; each < OPTION_COUNT; each++)
		printf("%-15s %s\n", OPTIONS[each].name, *OPTIONS[each].is ? "on" : "off");
}

static void set_number(const char *name, int value)
{
	char text[16];
	snprintf(text, sizeof text, "%d", value);
	set_variable(name, text);
}

/* getopts LETTERS NAME [WORD...]: the next option, in NAME, and its value in OPTARG; OPTIND is the next
   word's number. Behind a letter with a value stands a colon; one before all letters keeps it quiet. */
int getopts_command(char **word, int count)
{
	/* Where it is within a word with several letters. */
	static int within, last;
	if (count < 3)
		return complain(word[0], "getopts LETTERS NAME [WORD...]"), 2;
	char **words = count > 3 ? word + 3 : shell.arguments;
	int words_count = count > 3 ? count - 3 : shell.count;
	int index = variable("OPTIND") ? atoi(variable("OPTIND")) : 1, quiet = *word[1] == ':';
	if (index < 1)
		index = 1;
	if (index != last)
		within = 0;
	const char *text = index <= words_count ? words[index - 1] : "";
	if (!within && (text[0] != '-' || !text[1] || !strcmp(text, "--"))) {
		index += !strcmp(text, "--");
		set_variable(word[2], "?");
		set_number("OPTIND", index);
		return 1;
	}
	within += !within;
	if ((size_t)within >= strlen(text))
		return within = 0, 1;
	char letter[2] = {text[within++]}, found[2] = {*letter};
	const char *place = *letter == ':' ? NULL : strchr(word[1], *letter);
	unset_variable("OPTARG");
	int ends = !text[within];
	if (!place) {
		if (quiet)
			set_variable("OPTARG", letter);
		else
			complain(letter, "no such option");
		*found = '?';
	} else if (place[1] == ':') {
		const char *value = !ends ? text + within : index < words_count ? words[index] : NULL;
		index += ends && value;
		ends = 1;
		if (value) {
			set_variable("OPTARG", value);
		} else if (quiet) {
			set_variable("OPTARG", letter);
			*found = ':';
		} else {
			complain(letter, "its value is missing");
			*found = '?';
		}
	}
	if (ends)
		index++, within = 0;
	last = index;
	set_variable(word[2], found);
	set_number("OPTIND", index);
	return 0;
}
