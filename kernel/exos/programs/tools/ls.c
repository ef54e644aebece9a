/* What is in folders: -l with what is known of it, -a with names that begin with a dot, -1, -d. */
#include "tool.h"

#include <time.h>

enum { LONG = 1, ALL = 2, ONE = 4, ITSELF = 8 };

static unsigned found;

static const char *mode_text(mode_t mode)
{
	static char text[11];
	strcpy(text, "-rwxrwxrwx");
	if (S_ISDIR(mode))
		text[0] = 'd';
	else if (S_ISLNK(mode))
		text[0] = 'l';
	else if (S_ISCHR(mode))
		text[0] = 'c';
	else if (S_ISFIFO(mode))
		text[0] = 'p';
	for (int bit = 0; bit < 9; bit++)
		if (!(mode & 1 << (8 - bit)))
			text[1 + bit] = '-';
	return text;
}

static void one(const char *path, const char *name)
{
	struct stat status;
	if (!(found & LONG)) {
		puts(name);
		return;
	}
	if (lstat(path, &status)) {
		complain(path);
		return;
	}
	char when[32], to[512];
	time_t time = status.st_mtime;
	strftime(when, sizeof when, "%Y-%m-%d %H:%M", gmtime(&time));
	printf("%s %2ld %10lld %s %s", mode_text(status.st_mode), (long)status.st_nlink, (long long)status.st_size, when, name);
	if (S_ISLNK(status.st_mode)) {
		ssize_t length = readlink(path, to, sizeof to - 1);
		printf(" -> %.*s", length > 0 ? (int)length : 0, to);
	}
	putchar('\n');
}

static void folder(const char *path)
{
	struct names names;
	if (names_in(path, &names))
		return;
	if (found & ALL) {
		one(path, ".");
		char *above = joined(path, "..");
		one(above, "..");
		free(above);
	}
	for (int each = 0; each < names.count; each++) {
		if (names.name[each][0] == '.' && !(found & ALL))
			continue;
		char *whole = joined(path, names.name[each]);
		one(whole, names.name[each]);
		free(whole);
	}
	names_free(&names);
}

int main(int count, char **arguments)
{
	found = options(count, arguments, "la1d", "[-la1d] [NAME...]");
	int many = count - optind > 1, shown = 0;
	if (optind == count) {
		if (found & ITSELF)
			one(".", ".");
		else
			folder(".");
		return finished();
	}
	char **names = arguments + optind;
	qsort(names, count - optind, sizeof *names, by_bytes);
	for (int at = optind; at < count; at++) {
		struct stat status;
		if (lstat(arguments[at], &status))
			complain(arguments[at]);
		else if (found & ITSELF || !is_folder(arguments[at]))
			one(arguments[at], arguments[at]), shown = 1;
	}
	for (int at = optind; at < count; at++) {
		if (found & ITSELF || !is_folder(arguments[at]))
			continue;
		if (many)
			printf("%s%s:\n", shown ? "\n" : "", arguments[at]);
		folder(arguments[at]);
		shown = 1;
	}
	return finished();
}
