/* Who asks, and how often this program was asked. `?crash` and `?loop` are what their names say. */
#include <libcgi.h>

static int visitors;

int cgi_main(void)
{
	const char *query = cgi_env("QUERY_STRING");

	if (!strcmp(query, "crash"))
		*(volatile int *)64 = 1;
	while (!strcmp(query, "loop"))
		;
	if (!strcmp(query, "long")) {
		for (int line = 0; line < 20000; line++)
			if (cgi_printf("line %d\n", line) < 0)
				return 1;
		return 0;
	}
	if (!strcmp(query, "fail"))
		return 3;
	if (!strcmp(cgi_env("REQUEST_METHOD"), "POST")) {
		size_t size;
		const void *body = cgi_body(&size);

		cgi_header("X-Path", cgi_env("PATH_INFO"));
		return body && cgi_write(body, size) < 0;
	}
	cgi_printf("Hello, %s. You are visitor %d of this instance.\n", cgi_env("REMOTE_ADDR"), ++visitors);
	return 0;
}
