/* Does what its path says, in all the ways in which it is run. */
#include <libcgi.h>

static int is(const char *name)
{
	return !strcmp(cgi_env("PATH_INFO"), name);
}

static long wanted(void)
{
	return atol(cgi_env("QUERY_STRING"));
}

static int broken(void)
{
	return *(volatile int *)8; /* the line of the fault */
}

static int answer_echo(void)
{
	size_t size;
	const void *piece;
	while ((piece = cgi_body(&size)))
		if (cgi_write(piece, size) < 0)
			return 1;
	if (size)
		cgi_log("the body did not come");
	return 0;
}

static int answer_big(void)
{
	char line[1000];
	for (long left = wanted(), at = 0; left > 0; at++) {
		size_t part = left < (long)sizeof line ? (size_t)left : sizeof line;
		memset(line, 'a' + (int)(at % 26), part);
		if (cgi_write(line, part) < 0)
			return 0;
		left -= (long)part;
	}
	return 0;
}

int cgi_main(void)
{
	static int requests;
	requests++;
	if (is("/hello")) {
		cgi_header("Content-Type", "text/html");
		return cgi_puts("<p>Hello\n") < 0;
	}
	if (is("/html"))
		return cgi_html(cgi_env("QUERY_STRING")) < 0 || cgi_html("<a href=\"b\">&'c'") < 0;
	if (is("/host"))
		return cgi_printf("SERVER_NAME=%s\nHTTP_HOST=%s\n", cgi_env("SERVER_NAME"), cgi_env("HTTP_HOST")) < 0;
	if (is("/env")) {
		const char *names[] = {"REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "CONTENT_TYPE", "HTTP_X_A", "SITE"};
		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			const char *value = cgi_env(names[i]);
			cgi_printf("%s=%s\n", names[i], value ? value : "(none)");
		}
		return 0;
	}
	if (is("/count"))
		return cgi_printf("%d", requests) < 0;
	if (is("/echo"))
		return answer_echo();
	if (is("/hold")) {
		/* Inside until the body ends. */
		size_t size;
		cgi_puts("held");
		cgi_flush();
		while (cgi_body(&size))
			;
		return 0;
	}
	if (is("/read")) {
		char some[100];
		long sum = 0, got;
		while ((got = cgi_read(some, sizeof some)) > 0)
			for (long i = 0; i < got; i++)
				sum += some[i];
		return cgi_printf("%ld %ld", sum, got) < 0;
	}
	if (is("/big"))
		return answer_big();
	if (is("/room")) {
		size_t room;
		char *at = cgi_room(&room);
		memset(at, 'r', room);
		cgi_wrote(room);
		return 0;
	}
	if (is("/early")) {
		/* A part of the head, then the rest, then a body in two parts. */
		cgi_header("X-First", "1");
		cgi_flush();
		cgi_header("X-Second", "2");
		cgi_flush();
		cgi_puts("one ");
		cgi_flush();
		return cgi_puts("two") < 0;
	}
	if (is("/sized")) {
		/* Says how long the body is, and sends it to those who want it. */
		cgi_header("Content-Type", "text/plain");
		cgi_header("Content-Length", "5");
		if (wanted())
			cgi_flush();
		return strcmp(cgi_env("REQUEST_METHOD"), "HEAD") && cgi_puts("five!") < 0;
	}
	if (is("/status")) {
		cgi_status(404);
		return cgi_puts("not here") < 0;
	}
	if (is("/move"))
		return cgi_header("Location", "/elsewhere");
	if (is("/header"))
		return cgi_printf("%d %d", cgi_header("X-A", "b\r\nSet-Cookie: c=d"), cgi_header("X A", "b")) < 0;
	if (is("/chatter")) {
		for (int i = 0; i < 300; i++)
			cgi_log("chatter");
		return cgi_puts("said") < 0;
	}
	if (is("/log")) {
		cgi_log("a line\nand no second");
		return 0;
	}
	if (is("/fail"))
		return 7;
	if (is("/null"))
		return broken();
	if (is("/late-null")) {
		cgi_puts("the beginning");
		cgi_flush();
		return broken();
	}
	if (is("/exit"))
		exit(3);
	if (is("/loop"))
		for (;;)
			__asm__ volatile("");
	if (is("/eat")) {
		for (char *at; (at = malloc(1 << 20));)
			memset(at, 1, 1 << 20);
		return cgi_puts("no more") < 0;
	}
	/* What no program should send: past the header's checks. */
	const char *raw = is("/split")    ? "X-A: b\rSet-Cookie: c=d\r\n"
	                  : is("/fold")   ? "X-A: b\n folded\n"
	                  : is("/length") ? "Content-Length: 3\r\n"
	                  : is("/chunks") ? "Transfer-Encoding: chunked\r\n"
	                  : is("/line")   ? "no header at all\r\n"
	                  : is("/number") ? "Status: 99\r\n"
	                                  : NULL;
	if (raw)
		return libcgi_put(raw, strlen(raw)) < 0 || cgi_puts("some bytes") < 0;
	cgi_status(404);
	return 0;
}
