/* Greets who comes, remembers how many came, and can be made to fail in several ways. */
#include <libcgi.h>

static unsigned long visits;

int cgi_main(void)
{
	const char *query = cgi_env("QUERY_STRING");
	cgi_header("Content-Type", "text/plain; charset=utf-8");
	visits++;
	if (query && !strcmp(query, "crash"))
		return *(volatile int *)64; /* a pointer that is none: see the log */
	if (query && !strcmp(query, "loop"))
		for (;;)
			visits++;
	cgi_printf("Hello, %s. You are visitor %lu of this instance.\n", cgi_env("REMOTE_ADDR"), visits);
	return 0;
}
