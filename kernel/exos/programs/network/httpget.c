/* Gets what a URL names, by HTTP/1.1, to the output or a file. Nothing that the server says is believed: lengths, pieces, heads and
 * redirects have bounds, and an answer that is cut short is an error. */
#include "../tools/tool.h"

#include <ctype.h>
#include <netdb.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>

#define USAGE "[-v] [-o FILE] [-r REDIRECTS] [-t SECONDS] URL"

static const char help[] =
	"usage: httpget " USAGE "\n"
	"Gets what http://HOST[:PORT]/PATH names.\n"
	"  -o FILE       to a file, not to the output\n"
	"  -r REDIRECTS  follows so many redirects at most (5)\n"
	"  -t SECONDS    waits so long for a connection, and for more bytes (30)\n"
	"  -v            the answer's head to the errors\n"
	"Ends with 0 if all came, 1 if it could not be got, 2 for wrong options, 3 if the server refused it.\n";

enum { HEAD = 16384, NAME = 256, PATH = 2048, PIECE = 16384 };

static struct {
	char host[NAME], port[8], path[PATH];
} url;

static int stream = -1, seconds = 30, verbose, output = STDOUT_FILENO;
static char head[HEAD + 1], piece[PIECE];
/* Bytes of `piece` that were read and not used. */
static size_t at, there;

/* An answer's head. */
static struct {
	int status, chunked;
	/* -1: none, or as long as the connection is there. */
	long long length;
	char location[PATH];
} answer;

static int failed(const char *why)
{
	return complain_words(url.host, why);
}

/* Takes a URL apart, or what a redirect says relative to the one before. 0: it is one. */
static int take_apart(const char *text)
{
	const char *rest = text, *end, *colon;
	size_t length;

	for (const char *each = text; *each; each++)
		if ((unsigned char)*each <= ' ' || *each == 127)
			return -1;
	if (!strncasecmp(text, "http://", 7)) {
		rest = text + 7;
	} else if (*text == '/' && text[1] != '/' && *url.host) {
		goto path;
	} else if (strstr(text, "://") || *url.host) {
		return -1;
	}
	end = rest + strcspn(rest, "/?#");
	colon = memchr(rest, ':', end - rest);
	length = (colon ? colon : end) - rest;
	if (length == 0 || length >= NAME || memchr(rest, '@', end - rest))
		return -1;
	memcpy(url.host, rest, length);
	url.host[length] = 0;
	strcpy(url.port, "80");
	if (colon) {
		length = end - colon - 1;
		if (length == 0 || length > 5 || strspn(colon + 1, "0123456789") < length)
			return -1;
		memcpy(url.port, colon + 1, length);
		url.port[length] = 0;
		if (atoi(url.port) < 1 || atoi(url.port) > 65535)
			return -1;
	}
	rest = end;
path:
	length = strcspn(rest, "#");
	if (length + 2 > PATH)
		return -1;
	*url.path = '/';
	memcpy(url.path + (*rest != '/'), rest, length);
	url.path[length + (*rest != '/')] = 0;
	return 0;
}

static int connected(void)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
	struct timeval time = {.tv_sec = seconds};
	int error = getaddrinfo(url.host, url.port, &hints, &found);

	if (error)
		return failed(gai_strerror(error));
	stream = socket(AF_INET, SOCK_STREAM, 0);
	if (stream < 0)
		return complain("socket");
	setsockopt(stream, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
	setsockopt(stream, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
	error = connect(stream, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	if (error && (errno == EINPROGRESS || errno == EAGAIN))
		errno = ETIMEDOUT;
	return error ? complain(url.host) : 0;
}

static int asked(void)
{
	static char request[PATH + NAME + 256];
	int length = snprintf(request, sizeof request,
			      "GET %s HTTP/1.1\r\nHost: %s%s%s\r\nUser-Agent: httpget\r\nAccept: */*\r\nConnection: close\r\n\r\n",
			      url.path, url.host, strcmp(url.port, "80") ? ":" : "", strcmp(url.port, "80") ? url.port : "");

	return put_all(stream, request, length) ? complain(url.host) : 0;
}

/* More bytes. Their number; 0: the server has ended; -1: it has complained. */
static ssize_t more(void)
{
	ssize_t length;

	do
		length = read(stream, piece, PIECE);
	while (length < 0 && errno == EINTR);
	if (length < 0) {
		if (errno == EAGAIN)
			errno = ETIMEDOUT;
		complain(url.host);
	}
	at = 0;
	there = length < 0 ? 0 : length;
	return length;
}

/* The next byte; -1: there is none, and it has complained. */
static int byte(void)
{
	if (at == there && more() <= 0) {
		if (!tool_failed)
			failed("the answer is cut short");
		return -1;
	}
	return (unsigned char)piece[at++];
}

/* The value of a field by its name, if this is it. */
static const char *value(const char *line, const char *name)
{
	size_t length = strlen(name);

	if (strncasecmp(line, name, length) || line[length] != ':')
		return NULL;
	line += length + 1;
	return line + strspn(line, " \t");
}

/* One field of a head: 0, or -1 if it makes no sense. */
static int field(const char *line)
{
	const char *text;
	char *rest;

	if ((text = value(line, "Content-Length"))) {
		long long length = isdigit((unsigned char)*text) ? strtoll(text, &rest, 10) : -1;

		/* Two lengths that differ are two readings of one answer. */
		if (length < 0 || errno == ERANGE || rest[strspn(rest, " \t")] || (answer.length >= 0 && answer.length != length))
			return -1;
		answer.length = length;
	} else if ((text = value(line, "Transfer-Encoding"))) {
		if (answer.chunked || strcasecmp(text, "chunked"))
			return -1;
		answer.chunked = 1;
	} else if ((text = value(line, "Location")) && strlen(text) < PATH) {
		strcpy(answer.location, text);
	}
	return 0;
}

/* Reads a head: 0 if it is one. */
static int read_head(void)
{
	size_t length = 0, lines = 0;
	char *line, *next;

	answer.status = answer.chunked = 0;
	answer.length = -1;
	*answer.location = 0;
	while (length < 4 || memcmp(head + length - 4, "\r\n\r\n", 4)) {
		int one = byte();

		if (one < 0)
			return -1;
		if (length == HEAD || !one)
			return failed("the answer's head makes no sense");
		head[length++] = one;
	}
	head[length - 2] = 0;
	if (verbose)
		fputs(head, stderr);
	for (line = head; *line; line = next, lines++) {
		next = strstr(line, "\r\n");
		if (!next)
			return failed("the answer's head makes no sense");
		*next = 0;
		next += 2;
		errno = 0;
		if (lines ? field(line) : sscanf(line, "HTTP/1.%*1[01] %3d", &answer.status) != 1)
			return failed("the answer's head makes no sense");
	}
	if (answer.chunked)
		answer.length = -1;
	return answer.status < 100 ? failed("the answer's head makes no sense") : 0;
}

/* Writes so many bytes of the answer, or all until the server ends if it is -1. */
static int take(long long left)
{
	while (left) {
		size_t some;

		if (at == there) {
			ssize_t length = more();

			if (length < 0)
				return -1;
			if (length == 0)
				return left < 0 ? 0 : failed("the answer is cut short");
		}
		some = left >= 0 && (unsigned long long)left < there - at ? (size_t)left : there - at;
		if (put_all(output, piece + at, some))
			return complain("output");
		at += some;
		left -= left > 0 ? (long long)some : 0;
	}
	return 0;
}

/* A line of a body in pieces, without its end. */
static int body_line(char *to, int room)
{
	int length = 0, one;

	while ((one = byte()) != '\n') {
		if (one < 0)
			return -1;
		if (length == room - 1 || !one)
			return failed("the answer's pieces make no sense");
		to[length++] = one;
	}
	if (!length || to[length - 1] != '\r')
		return failed("the answer's pieces make no sense");
	to[length - 1] = 0;
	return 0;
}

static int take_pieces(void)
{
	static char line[HEAD];

	for (;;) {
		unsigned long length;
		char *end;

		if (body_line(line, sizeof line))
			return -1;
		errno = 0;
		length = strtoul(line, &end, 16);
		if (!isxdigit((unsigned char)*line) || end - line > 15 || (*end && *end != ';' && *end != ' '))
			return failed("the answer's pieces make no sense");
		if (!length)
			break;
		if (take(length) || body_line(line, sizeof line))
			return -1;
		if (*line)
			return failed("the answer's pieces make no sense");
	}
	/* Fields behind it, which say nothing here, as many as a head may have. */
	for (int lines = 0; lines < 64; lines++) {
		if (body_line(line, sizeof line))
			return -1;
		if (!*line)
			return 0;
	}
	return failed("the answer's pieces make no sense");
}

static int redirects(int status)
{
	return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* One request: 0 if there is an answer, whose head was read. */
static int get(void)
{
	at = there = 0;
	if (stream >= 0)
		close(stream);
	if (connected() || asked())
		return 1;
	/* Words before the answer are few. */
	for (int each = 0; each < 8; each++) {
		if (read_head())
			return 1;
		if (answer.status >= 200)
			return 0;
	}
	return failed("the answer's head makes no sense");
}

static int got(const char *file, int most)
{
	for (int each = 0; get() == 0; each++) {
		if (!redirects(answer.status) || !*answer.location) {
			if (answer.status >= 300) {
				fprintf(stderr, "%s: %s%s: the server says %d\n", tool_name, url.host, url.path, answer.status);
				return 3;
			}
			if (file && (output = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0666)) < 0)
				return complain(file);
			if (answer.status == 204)
				return 0;
			if (answer.chunked ? take_pieces() : take(answer.length))
				return 1;
			return file && close(output) ? complain(file) : 0;
		}
		if (each == most)
			return failed("too many redirects");
		if (take_apart(answer.location))
			return failed("the redirect leads nowhere");
	}
	return 1;
}

static int whole(const char *text, int least, int most)
{
	char *rest;
	long value = strtol(text, &rest, 10);

	if (rest == text || *rest || value < least || value > most)
		usage(USAGE);
	return value;
}

int main(int count, char **words)
{
	const char *file = NULL;
	int letter, most = 5;

	tool_name = "httpget";
	if (count == 2 && !strcmp(words[1], "--help")) {
		fputs(help, stdout);
		return finished();
	}
	while ((letter = getopt(count, words, "vo:r:t:")) != -1) {
		switch (letter) {
		case 'v':
			verbose = 1;
			break;
		case 'o':
			file = optarg;
			break;
		case 'r':
			most = whole(optarg, 0, 100);
			break;
		case 't':
			seconds = whole(optarg, 1, 100000);
			break;
		default:
			usage(USAGE);
		}
	}
	if (optind + 1 != count)
		usage(USAGE);
	if (take_apart(words[optind])) {
		complain_words(words[optind], "it is no URL of HTTP");
		return 2;
	}
	letter = got(file, most);
	return letter ? letter : finished();
}
