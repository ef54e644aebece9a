/* Lines in order of their bytes: -n of the numbers at their beginning, -r the other way, -u each
   once, -k FIELD from a field on, -t what fields end with. */
#include "tool.h"

#include <ctype.h>

#define WORDS "[-nru] [-k FIELD] [-t SIGN] [FILE...]"

static int numbers, backwards, once, field;
static char sign;

/* Where the field begins by which it is sorted. */
static const char *key(const char *line)
{
	for (int left = field; left > 1 && *line; left--) {
		if (sign) {
			line = strchr(line, sign);
			if (!line)
				return "";
			line++;
		} else {
			while (isspace((unsigned char)*line))
				line++;
			while (*line && !isspace((unsigned char)*line))
				line++;
		}
	}
	return line;
}

static int compare(const char *one, const char *other)
{
	const char *left = key(one), *right = key(other);
	if (numbers) {
		double a = strtod(left, NULL), b = strtod(right, NULL);
		if (a != b)
			return a < b ? -1 : 1;
		return 0;
	}
	return strcmp(left, right);
}

static int order(const void *one, const void *other)
{
	const char *left = *(char *const *)one, *right = *(char *const *)other;
	int how = compare(left, right);
	/* Equal by the key: by the whole line. */
	if (!how && !once)
		how = strcmp(left, right);
	return backwards ? -how : how;
}

/* In place, and the same for lines that are equal. */
static void merge_sort(char **lines, char **spare, long count)
{
	if (count < 2)
		return;
	long half = count / 2, one = 0, other = half, to = 0;
	merge_sort(lines, spare, half);
	merge_sort(lines + half, spare, count - half);
	memcpy(spare, lines, count * sizeof *lines);
	while (one < half || other < count)
		if (other == count || (one < half && order(&spare[one], &spare[other]) <= 0))
			lines[to++] = spare[one++];
		else
			lines[to++] = spare[other++];
}

int main(int count, char **arguments)
{
	char **lines = NULL;
	long many = 0, room = 0;
	int letter;
	tool_name = "sort";
	opterr = 0;
	while ((letter = getopt(count, arguments, "nruk:t:")) != -1) {
		switch (letter) {
		case 'n': numbers = 1; break;
		case 'r': backwards = 1; break;
		case 'u': once = 1; break;
		case 'k': field = atoi(optarg); break;
		case 't': sign = *optarg; break;
		default: usage(WORDS);
		}
	}
	static char *standard[] = {"-"};
	char **names = optind == count ? standard : arguments + optind;
	int files = optind == count ? 1 : count - optind;
	for (int at = 0; at < files; at++) {
		FILE *file = input(names[at]);
		char *line = NULL;
		size_t size = 0;
		ssize_t length;
		while (file && (length = next_line(file, &line, &size)) > 0) {
			if (line[length - 1] == '\n')
				line[length - 1] = '\0';
			if (many == room) {
				char **more = need((room = room ? 2 * room : 256) * sizeof *more);
				if (many)
					memcpy(more, lines, many * sizeof *more);
				free(lines);
				lines = more;
			}
			lines[many++] = strdup(line);
		}
		free(line);
		if (file)
			done_with(file);
	}
	char **spare = need(many * sizeof *spare);
	merge_sort(lines, spare, many);
	for (long at = 0; at < many; at++)
		if (!once || !at || compare(lines[at - 1], lines[at]))
			puts(lines[at]);
	return finished();
}
