/* Other names for files, or the same in another folder; between file systems files are copied. */
#include "tool.h"

static void move(const char *from, const char *to)
{
	if (rename(from, to) == 0)
		return;
	if (errno != EXDEV || is_folder(from)) {
		complain(from);
		return;
	}
	int in = open(from, O_RDONLY), out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (in < 0 || out < 0 || copy_all(in, out) || close(out) || unlink(from))
		complain(from);
	if (in >= 0)
		close(in);
}

int main(int count, char **arguments)
{
	options(count, arguments, "f", "FROM... TO");
	if (count - optind < 2)
		usage("FROM... TO");
	const char *to = arguments[count - 1];
	int into = is_folder(to);
	if (!into && count - optind > 2)
		return complain_words(to, "it is no folder");
	for (int at = optind; at < count - 1; at++) {
		char *whole = into ? joined(to, last_name(arguments[at])) : strdup(to);
		move(arguments[at], whole);
		free(whole);
	}
	return finished();
}
