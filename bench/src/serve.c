/* Answers with the file that PAGE names: read at the first request, kept for the others. */
#include <fcntl.h>
#include <libcgi.h>
#include <unistd.h>

static char page[1 << 18];
static long size = -1;

static void read_page(const char *name)
{
	int file = open(name, O_RDONLY);
	size = 0;
	for (long got; file >= 0 && (got = read(file, page + size, sizeof page - (size_t)size)) > 0;)
		size += got;
	if (file >= 0)
		close(file);
}

int cgi_main(void)
{
	if (size < 0)
		read_page(cgi_env("PAGE"));
	cgi_header("Content-Type", "text/html; charset=utf-8");
	return cgi_write(page, (size_t)size) < 0;
}
