/* A program that speaks FastCGI by hand, and wrongly in the way that its variable MODE says. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { END = 3, STDIN = 5, STDOUT = 6, STDERR = 7 };
#define HEAD "Content-Type: text/plain\r\n\r\n"

static unsigned char content[70000];
static unsigned request_id;
static int connection, requests;

static int take(void *to, size_t size)
{
	for (char *at = to; size;) {
		ssize_t got = read(connection, at, size);
		if (got <= 0)
			return 0;
		at += got;
		size -= (size_t)got;
	}
	return 1;
}

/* All of a request: up to the empty record of its body. */
static int take_request(void)
{
	for (;;) {
		unsigned char head[8];
		if (!take(head, sizeof head))
			return 0;
		request_id = (unsigned)(head[2] << 8 | head[3]);
		size_t size = (size_t)(head[4] << 8 | head[5]);
		if (!take(content, size + head[6]))
			return 0;
		if (head[1] == STDIN && !size)
			return 1;
	}
}

/* A record whose head says what it likes. */
static void put(int version, int kind, unsigned id, size_t says, int padding, const void *from, size_t size)
{
	unsigned char head[8] = {(unsigned char)version, (unsigned char)kind, (unsigned char)(id >> 8), (unsigned char)id,
	                         (unsigned char)(says >> 8), (unsigned char)says, (unsigned char)padding, 0};
	if (write(connection, head, sizeof head) < 0 || write(connection, from, size) < 0)
		exit(1);
}

static void say(int kind, const char *text)
{
	put(1, kind, request_id, strlen(text), 0, text, strlen(text));
}

static void end(void)
{
	put(1, END, request_id, 8, 0, "\0\0\0\0\0\0\0\0", 8);
}

static void answer(const char *mode)
{
	if (!strcmp(mode, "silent"))
		pause();
	if (!strcmp(mode, "version"))
		put(9, STDOUT, request_id, 4, 0, "evil", 4);
	if (!strcmp(mode, "other")) {
		put(1, STDOUT, request_id + 1, strlen(HEAD "evil"), 0, HEAD "evil", strlen(HEAD "evil"));
		put(1, END, request_id + 1, 8, 0, "\0\0\0\0\0\0\0\0", 8);
	}
	if (!strcmp(mode, "short")) {
		put(1, STDOUT, request_id, 1000, 0, HEAD, strlen(HEAD));
		exit(0);
	}
	if (!strcmp(mode, "padding"))
		put(1, STDOUT, request_id, strlen(HEAD), 255, HEAD, strlen(HEAD));
	if (!strcmp(mode, "endless"))
		for (;;)
			say(STDOUT, "X-A: b\r\n");
	if (!strcmp(mode, "nothing"))
		for (;;)
			say(STDOUT, "");
	if (!strcmp(mode, "chatter")) {
		memset(content, 'c', 65535);
		for (int i = 0; i < 20; i++)
			put(1, STDERR, request_id, 65535, 0, content, 65535);
	}
	if (!strcmp(mode, "headless")) {
		end();
		return;
	}
	if (!strcmp(mode, "falls")) {
		/* Every second request does something, says nothing and falls. */
		int done = open(getenv("DONE"), O_WRONLY | O_CREAT | O_APPEND, 0600);
		if (done < 0 || write(done, "x", 1) != 1)
			exit(1);
		close(done);
		if (++requests == 2)
			_exit(1);
	}
	say(STDOUT, HEAD "good");
	if (!strcmp(mode, "large")) {
		memset(content, 'g', 65535 + 255);
		for (int i = 0; i < 10; i++)
			put(1, STDOUT, request_id, 65535, 255, content, 65535 + 255);
	}
	if (!strcmp(mode, "endless-body"))
		for (;;)
			say(STDOUT, "good");
	if (!strcmp(mode, "leaves"))
		exit(0);
	end();
	if (!strcmp(mode, "late")) {
		say(STDOUT, HEAD "evil");
		end();
	}
	if (!strcmp(mode, "closes"))
		close(connection);
}

int main(void)
{
	const char *mode = getenv("MODE");
	for (;;) {
		connection = accept(0, NULL, NULL);
		if (!strcmp(mode, "deaf"))
			close(connection);
		while (take_request())
			answer(mode);
	}
}
