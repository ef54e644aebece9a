/* Copies files to a name, or into a folder; -r folders with all that is in them. */
#include "tool.h"

static unsigned found;

static void copy(const char *from, const char *to)
{
	struct stat status, other;
	if (stat(from, &status)) {
		complain(from);
		return;
	}
	if (stat(to, &other) == 0 && other.st_ino == status.st_ino && other.st_dev == status.st_dev) {
		complain_words(to, "it is the same file");
		return;
	}
	if (S_ISDIR(status.st_mode)) {
		struct names names;
		if (!found) {
			complain_words(from, "it is a folder: -r copies it");
			return;
		}
		/* Before the new one is there: it may lie in the old one. */
		if (names_in(from, &names))
			return;
		if (mkdir(to, 0777) && errno != EEXIST)
			complain(to);
		else
			for (int each = 0; each < names.count; each++) {
				char *one = joined(from, names.name[each]), *other = joined(to, names.name[each]);
				copy(one, other);
				free(one);
				free(other);
			}
		names_free(&names);
		return;
	}
	int in = open(from, O_RDONLY), out;
	if (in < 0) {
		complain(from);
		return;
	}
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC, status.st_mode & 0777);
	int how = out < 0 ? -2 : copy_all(in, out);
	if (how)
		complain(how == -1 ? from : to);
	close(in);
	if (out >= 0 && close(out) && !how)
		complain(to);
}

int main(int count, char **arguments)
{
	found = options(count, arguments, "rRa", "[-r] FROM... TO");
	if (count - optind < 2)
		usage("[-r] FROM... TO");
	const char *to = arguments[count - 1];
	int into = is_folder(to);
	if (!into && count - optind > 2)
		return complain_words(to, "it is no folder");
	for (int at = optind; at < count - 1; at++) {
		char *whole = into ? joined(to, last_name(arguments[at])) : strdup(to);
		copy(arguments[at], whole);
		free(whole);
	}
	return finished();
}
