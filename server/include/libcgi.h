/* libcgi.h: web programs in C. One source makes a CGI program, a FastCGI program, an extension, or
 * a shared object.
 *
 *     #include <libcgi.h>
 *
 *     int cgi_main(void)
 *     {
 *             cgi_header("Content-Type", "text/plain");
 *             cgi_printf("Hello, %s.\n", cgi_env("REMOTE_ADDR"));
 *             return 0;
 *     }
 *
 *     postern cc -O2 hello.c -o hello.px                               called in the server, confined
 *     gcc -O2 -shared -fPIC -DLIBCGI_SHARED hello.c -o hello.so        called in the server, not confined
 *     gcc -O2 -DLIBCGI_FASTCGI hello.c -o hello.fcgi -lfcgi            a process that serves many requests
 *     gcc -O2 hello.c -o hello.cgi                                     a process for each request
 *
 * cgi_main is called once for each request, by one thread at a time. Variables of the program keep
 * their values between requests where the same instance serves them (all but CGI); those of a
 * handler that several servers share are one, and need a lock. It returns 0; anything else is a failure, for which the server answers 500 if nothing was sent yet. Headers
 * come before the first byte of the answer. In a program of several files, all that include this
 header but one say #define LIBCGI_ELSEWHERE before. */
#ifndef LIBCGI_H
#define LIBCGI_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#if defined(__postern__) || defined(LIBCGI_SHARED)
#define LIBCGI_INSIDE 1
#elif defined(LIBCGI_FASTCGI)
#include <fcgiapp.h>
#else
#include <errno.h>
#include <unistd.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The program. */
int cgi_main(void);

/* What server and program show each other when the program is called in the server's own process:
 * version 1. The program reads it and the environment and body that it points to; it writes only
 * where `answer` points. */
struct libcgi_exchange {
	unsigned long version;
	const char *environment; /* NAME=value, each with a NUL behind it */
	unsigned long environment_size;
	const char *body; /* what has come of the request's body */
	unsigned long body_size;
	unsigned long body_more; /* 0: that is all of it */
	char *answer;            /* where output goes: headers, an empty line, the rest */
	unsigned long room;
	/* For shared objects. Extensions import functions of the same meaning. */
	void *call;
	long (*hand_over)(void *call, unsigned long size);
	long (*more)(void *call);
	void (*log)(void *call, const char *text, unsigned long size);
};

/* One for each instance of the program. An extension may be one in several processes, of which each
 * serves another request: it has one for each thread. */
#if defined(__postern__)
#define LIBCGI_OWN __thread
#else
#define LIBCGI_OWN
#endif
struct libcgi_state {
	char *answer;
	size_t room, used;
	const char *body;
	size_t body_left;
	int begun, typed, failed, sent;
#if defined(LIBCGI_INSIDE)
	const struct libcgi_exchange *exchange;
#elif defined(LIBCGI_FASTCGI)
	FCGX_Request request;
#else
	long expected; /* bytes of the body that are still to come; -1 is not known */
#endif
#if !defined(LIBCGI_INSIDE)
	char in[1 << 16], out[1 << 16];
#endif
};
__attribute__((visibility("hidden"))) extern LIBCGI_OWN struct libcgi_state libcgi;
#if !defined(LIBCGI_ELSEWHERE)
LIBCGI_OWN struct libcgi_state libcgi;
#endif

#define LIBCGI_FUNCTION static inline __attribute__((unused))

#if defined(LIBCGI_INSIDE)

#if defined(__postern__)
/* Hands over what the program wrote and waits for a place for more; 0, or -1 if nobody wants it. */
extern long libcgi_hand_over(unsigned long size) __attribute__((visibility("protected")));
/* Waits for more of the body; 1, 0 at its end, or -1 if it does not come. */
extern long libcgi_more(void) __attribute__((visibility("protected")));
/* Writes to the server's error log. */
extern void libcgi_log(const char *text, unsigned long size) __attribute__((visibility("protected")));
#define LIBCGI_HAND_OVER(size) libcgi_hand_over(size)
#define LIBCGI_MORE() libcgi_more()
#define LIBCGI_LOG(text, size) libcgi_log(text, size)
#else
#define LIBCGI_HAND_OVER(size) libcgi.exchange->hand_over(libcgi.exchange->call, size)
#define LIBCGI_MORE() libcgi.exchange->more(libcgi.exchange->call)
#define LIBCGI_LOG(text, size) libcgi.exchange->log(libcgi.exchange->call, text, size)
#endif

/* The value of a variable of the request (REQUEST_METHOD, QUERY_STRING, HTTP_USER_AGENT, ...: RFC
 * 3875), or null. */
LIBCGI_FUNCTION const char *cgi_env(const char *name)
{
	const char *at = libcgi.exchange->environment;
	size_t left = libcgi.exchange->environment_size, size = strlen(name);
	while (left) {
		size_t line = strlen(at) + 1;
		if (line > size && at[size] == '=' && !memcmp(at, name, size))
			return at + size + 1;
		at += line;
		left -= line < left ? line : left;
	}
	return NULL;
}

LIBCGI_FUNCTION int libcgi_send(void)
{
	if (LIBCGI_HAND_OVER(libcgi.used) < 0)
		return -1;
	libcgi.answer = libcgi.exchange->answer;
	libcgi.room = libcgi.exchange->room;
	return 0;
}

LIBCGI_FUNCTION int libcgi_receive(void)
{
	if (!libcgi.exchange->body_more)
		return 0;
	long more = LIBCGI_MORE();
	libcgi.body = libcgi.exchange->body;
	libcgi.body_left = more > 0 ? libcgi.exchange->body_size : 0;
	return more > 0 ? 1 : (int)more;
}

/* A line for the server's error log. */
LIBCGI_FUNCTION void cgi_log(const char *text)
{
	LIBCGI_LOG(text, strlen(text));
}

#elif defined(LIBCGI_FASTCGI)

LIBCGI_FUNCTION const char *cgi_env(const char *name)
{
	return FCGX_GetParam(name, libcgi.request.envp);
}

LIBCGI_FUNCTION int libcgi_send(void)
{
	return FCGX_PutStr(libcgi.out, (int)libcgi.used, libcgi.request.out) == (int)libcgi.used ? 0 : -1;
}

LIBCGI_FUNCTION int libcgi_push(void)
{
	return FCGX_FFlush(libcgi.request.out) < 0 ? -1 : 0;
}

LIBCGI_FUNCTION int libcgi_receive(void)
{
	int got = FCGX_GetStr(libcgi.in, sizeof libcgi.in, libcgi.request.in);
	libcgi.body = libcgi.in;
	libcgi.body_left = got > 0 ? (size_t)got : 0;
	return got > 0;
}

LIBCGI_FUNCTION void cgi_log(const char *text)
{
	FCGX_FPrintF(libcgi.request.err, "%s\n", text);
}

#else

LIBCGI_FUNCTION const char *cgi_env(const char *name)
{
	return getenv(name);
}

LIBCGI_FUNCTION int libcgi_send(void)
{
	for (size_t done = 0; done < libcgi.used;) {
		ssize_t wrote = write(1, libcgi.out + done, libcgi.used - done);
		if (wrote < 0 && errno != EINTR)
			return -1;
		done += wrote > 0 ? (size_t)wrote : 0;
	}
	return 0;
}

LIBCGI_FUNCTION int libcgi_receive(void)
{
	size_t want = sizeof libcgi.in;
	if (libcgi.expected >= 0 && (size_t)libcgi.expected < want)
		want = (size_t)libcgi.expected;
	ssize_t got;
	do
		got = want ? read(0, libcgi.in, want) : 0;
	while (got < 0 && errno == EINTR);
	libcgi.body = libcgi.in;
	libcgi.body_left = got > 0 ? (size_t)got : 0;
	if (libcgi.expected >= 0)
		libcgi.expected -= (long)libcgi.body_left;
	/* An end before what was promised is none. */
	return got > 0 ? 1 : got < 0 || libcgi.expected > 0 ? -1 : 0;
}

LIBCGI_FUNCTION void cgi_log(const char *text)
{
	fprintf(stderr, "%s\n", text);
}

#endif

#if !defined(LIBCGI_FASTCGI) || defined(LIBCGI_INSIDE)
#define libcgi_push() 0
#endif

/* Hands over what was written so far; the client may have it before the program ends. 0, or -1 if
 * nobody wants it any more. */
LIBCGI_FUNCTION int cgi_flush(void)
{
	if (libcgi.failed || libcgi_send() < 0 || libcgi_push() < 0) {
		libcgi.failed = 1;
		return -1;
	}
	libcgi.used = 0;
	libcgi.sent = 1;
	return 0;
}

/* Copies bytes into the answer without ending its head. */
LIBCGI_FUNCTION int libcgi_put(const void *from, size_t size)
{
	const char *at = (const char *)from;
	while (size) {
		size_t part = libcgi.room - libcgi.used;
		if (!part) {
			if (cgi_flush() < 0)
				return -1;
			continue;
		}
		part = part < size ? part : size;
		memcpy(libcgi.answer + libcgi.used, at, part);
		libcgi.used += part;
		at += part;
		size -= part;
	}
	return 0;
}

/* A header of the answer. -1 if it cannot be one (a line end in it, say), or if the answer has
 * begun. */
LIBCGI_FUNCTION int cgi_header(const char *name, const char *value)
{
	if (libcgi.begun || !*name || name[strcspn(name, ": \t\r\n")] || value[strcspn(value, "\r\n")])
		return -1;
	if (!strcasecmp(name, "content-type"))
		libcgi.typed = 1;
	if (libcgi_put(name, strlen(name)) < 0 || libcgi_put(": ", 2) < 0 || libcgi_put(value, strlen(value)) < 0)
		return -1;
	return libcgi_put("\r\n", 2);
}

/* The answer's status, 200 to 599; 200 if nothing is said. */
LIBCGI_FUNCTION int cgi_status(int status)
{
	if (status < 200 || status > 599)
		return -1;
	char digits[] = {(char)('0' + status / 100), (char)('0' + status / 10 % 10), (char)('0' + status % 10), 0};
	return cgi_header("Status", digits);
}

LIBCGI_FUNCTION int libcgi_begin(void)
{
	if (libcgi.begun)
		return 0;
	if (!libcgi.typed && cgi_header("Content-Type", "text/plain; charset=utf-8") < 0)
		return -1;
	libcgi.begun = 1;
	return libcgi_put("\r\n", 2);
}

/* Bytes of the answer: all of them, or -1 if nobody wants them any more. */
LIBCGI_FUNCTION long cgi_write(const void *from, size_t size)
{
	if (libcgi_begin() < 0 || libcgi_put(from, size) < 0)
		return -1;
	return (long)size;
}

/* A text of the answer. */
LIBCGI_FUNCTION long cgi_puts(const char *text)
{
	return cgi_write(text, strlen(text));
}

/* A text of the answer in which nothing is markup: what a client sent, say. */
LIBCGI_FUNCTION long cgi_html(const char *text)
{
	for (const char *at = text; at && *at;) {
		size_t plain = strcspn(at, "&<>\"'");
		if (cgi_write(at, plain) < 0)
			return -1;
		at += plain;
		const char *escaped = *at == '&'    ? "&amp;"
		                      : *at == '<'  ? "&lt;"
		                      : *at == '>'  ? "&gt;"
		                      : *at == '"'  ? "&quot;"
		                      : *at == '\'' ? "&#39;"
		                                    : NULL;
		if (!escaped)
			break;
		if (cgi_puts(escaped) < 0)
			return -1;
		at++;
	}
	return 0;
}

/* Where the program itself may write what comes next in the answer, and how much; null if nobody
 * wants it. What it wrote counts once cgi_wrote says how much that is. */
LIBCGI_FUNCTION void *cgi_room(size_t *room)
{
	if (libcgi_begin() < 0 || (libcgi.used == libcgi.room && cgi_flush() < 0))
		return NULL;
	*room = libcgi.room - libcgi.used;
	return libcgi.answer + libcgi.used;
}

LIBCGI_FUNCTION void cgi_wrote(size_t size)
{
	size_t room = libcgi.room - libcgi.used;
	libcgi.used += size < room ? size : room;
}

/* As printf. */
__attribute__((format(printf, 1, 2))) LIBCGI_FUNCTION long cgi_printf(const char *format, ...)
{
	size_t room;
	char *at = (char *)cgi_room(&room);
	if (!at)
		return -1;
	va_list list;
	va_start(list, format);
	int size = vsnprintf(at, room, format, list);
	va_end(list);
	if (size >= 0 && (size_t)size < room) {
		cgi_wrote((size_t)size);
		return size;
	}
	char *text = size < 0 ? NULL : (char *)malloc((size_t)size + 1);
	if (!text)
		return -1;
	va_start(list, format);
	vsnprintf(text, (size_t)size + 1, format, list);
	va_end(list);
	long wrote = cgi_write(text, (size_t)size);
	free(text);
	return wrote;
}

/* The next piece of the request's body where it lies; it is there until the next call. Null at the
 * end (size 0), or if the rest does not come (size 1). */
LIBCGI_FUNCTION const void *cgi_body(size_t *size)
{
	if (!libcgi.body_left) {
		int more = libcgi_receive();
		if (more <= 0) {
			*size = more < 0;
			return NULL;
		}
	}
	*size = libcgi.body_left;
	libcgi.body_left = 0;
	return libcgi.body;
}

/* Copies the next bytes of the request's body: how many, 0 at the end, -1 if the rest does not
 * come. */
LIBCGI_FUNCTION long cgi_read(void *to, size_t room)
{
	if (!libcgi.body_left && room) {
		int more = libcgi_receive();
		if (more <= 0)
			return more;
	}
	size_t part = libcgi.body_left < room ? libcgi.body_left : room;
	memcpy(to, libcgi.body, part);
	libcgi.body += part;
	libcgi.body_left -= part;
	return (long)part;
}

/* One request; 0 if all went well. */
LIBCGI_FUNCTION int libcgi_once(void)
{
	libcgi.used = libcgi.begun = libcgi.typed = libcgi.failed = libcgi.sent = 0;
	int status = cgi_main();
	if (status == 0 && libcgi_begin() < 0)
		status = -1;
	return status;
}

#if defined(LIBCGI_ELSEWHERE)
#elif defined(LIBCGI_INSIDE)

long libcgi_serve(const struct libcgi_exchange *exchange);

/* The server calls this: how much lies in the answer's place in the end, or -1 less the program's
 * status. */
__attribute__((visibility("default"))) long libcgi_serve(const struct libcgi_exchange *exchange)
{
	libcgi.exchange = exchange;
	libcgi.answer = exchange->answer;
	libcgi.room = exchange->room;
	libcgi.body = exchange->body;
	libcgi.body_left = exchange->body_size;
	int status = libcgi_once();
	return status == 0 ? (long)libcgi.used : -1 - (long)(status & 0xff);
}

#elif defined(LIBCGI_FASTCGI)

int main(void)
{
	FCGX_Init();
	FCGX_InitRequest(&libcgi.request, 0, 0);
	libcgi.answer = libcgi.out;
	libcgi.room = sizeof libcgi.out;
	while (FCGX_Accept_r(&libcgi.request) == 0) {
		libcgi.body_left = 0;
		int status = libcgi_once();
		if (status == 0 && !libcgi.failed)
			libcgi_send();
		FCGX_SetExitStatus(status, libcgi.request.out);
		FCGX_Finish_r(&libcgi.request);
	}
	return 0;
}

#else

int main(void)
{
	const char *length = getenv("CONTENT_LENGTH");
	libcgi.expected = length && *length ? atol(length) : -1;
	libcgi.answer = libcgi.out;
	libcgi.room = sizeof libcgi.out;
	int status = libcgi_once();
	if (status == 0 && cgi_flush() < 0)
		status = 1;
	return status;
}

#endif

#ifdef __cplusplus
}
#endif

#endif
