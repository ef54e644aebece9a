/* Mounts a folder of another machine: nfs [-o OPTION,…] HOST:/FOLDER /POINT. Ends when it is mounted; a
   copy of it goes on and serves. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/nfs.h>
#include <exos/service.h>

/* As other systems' mount: how it was called, and what has failed. */
enum { CALLED = 1, FAILED = 32 };

static _Noreturn void usage(void)
{
	fputs("usage: nfs [-o OPTION,...] HOST:/FOLDER /POINT\n"
	      "options: tcp, udp, ro, rw, port=N, mountport=N, uid=N, gid=N, timeo=TENTHS, retrans=N\n",
	      stderr);
	exit(CALLED);
}

/* A number from 0 to most. */
static unsigned long number(const char *option, const char *text, unsigned long most)
{
	char *end;
	unsigned long value = text ? strtoul(text, &end, 10) : 0;
	if (!text || end == text || *end || value > most || *text == '-') {
		fprintf(stderr, "nfs: %s: a number up to %lu is missing\n", option, most);
		exit(CALLED);
	}
	return value;
}

static void option(struct exos_nfs *what, char *text)
{
	char *value = strchr(text, '=');
	if (value)
		*value++ = '\0';
	if (!strcmp(text, "tcp"))
		what->stream = 1;
	else if (!strcmp(text, "udp"))
		what->stream = 0;
	else if (!strcmp(text, "ro"))
		what->reads_only = 1;
	else if (!strcmp(text, "rw"))
		what->reads_only = 0;
	else if (!strcmp(text, "port"))
		what->port = number(text, value, 65535);
	else if (!strcmp(text, "mountport"))
		what->mount_port = number(text, value, 65535);
	else if (!strcmp(text, "uid"))
		what->user = number(text, value, UINT_MAX - 1);
	else if (!strcmp(text, "gid"))
		what->group = number(text, value, UINT_MAX - 1);
	else if (!strcmp(text, "timeo"))
		what->timeout = 100 * number(text, value, 6000);
	else if (!strcmp(text, "retrans"))
		what->tries = number(text, value, 100) + 1;
	else {
		fprintf(stderr, "nfs: there is no option %s\n", text);
		usage();
	}
}

/* The copy: what has gone wrong is said in the pipe, which is its output. */
static _Noreturn void serve(const struct exos_nfs *what, const char *name)
{
	const char *words = "";
	struct exos_nfs_folder *folder = exos_nfs_mount(what, &words);
	if (!folder) {
		fprintf(stderr, "nfs: %s:%s: %s (%s)\n", what->host, what->export, words, strerror(errno));
		exit(FAILED);
	}
	if (exos_nfs_serve(folder, name) < 0) {
		const char *why = errno == EEXIST ? "something is mounted there" : strerror(errno);
		fprintf(stderr, "nfs: %s: %s\n", name, why);
		exit(FAILED);
	}
	exit(0);
}

/* What the copy says, and how it ended. */
static int failed(int from, int status)
{
	char bytes[512];
	ssize_t length;
	while ((length = read(from, bytes, sizeof bytes)) > 0)
		fwrite(bytes, 1, length, stderr);
	if (WIFSIGNALED(status))
		fprintf(stderr, "nfs: %s\n", strsignal(WTERMSIG(status)));
	return WIFEXITED(status) ? WEXITSTATUS(status) : FAILED;
}

/* A mount point is a path from the root that says each name once. */
static char *point(const char *path)
{
	static char whole[EXOS_SERVICE_NAME];
	size_t length = strlen(path);
	while (length > 1 && path[length - 1] == '/')
		length--;
	if (path[0] != '/' || length < 2 || length >= sizeof whole) {
		fprintf(stderr, "nfs: %s: a mount point is a path from / on, of up to %zu bytes\n", path,
			sizeof whole - 1);
		exit(CALLED);
	}
	memcpy(whole, path, length);
	return whole;
}

int main(int count, char **words)
{
	struct exos_nfs what = { .stream = 1 };
	struct exos_service found;
	int ends[2], status, silence;
	char *colon, *name;
	pid_t copy;

	for (int letter; (letter = getopt(count, words, "o:")) != -1;) {
		if (letter != 'o')
			usage();
		for (char *rest = optarg, *each; (each = strsep(&rest, ","));)
			option(&what, each);
	}
	colon = count == optind + 2 ? strchr(words[optind], ':') : NULL;
	if (!colon || colon == words[optind] || colon[1] != '/')
		usage();
	*colon = '\0';
	what.host = words[optind];
	what.export = colon + 1;
	name = point(words[optind + 1]);
	if (pipe(ends) || (copy = fork()) < 0) {
		perror("nfs");
		return FAILED;
	}
	if (copy == 0) {
		/* The console is another group's, and who reads what this one wrote sees its end. */
		setpgid(0, 0);
		silence = open("/dev/null", O_RDWR);
		dup2(silence, 0);
		dup2(silence, 1);
		dup2(ends[1], 2);
		for (int each = 3; each < 16; each++)
			close(each);
		serve(&what, name);
	}
	close(ends[1]);
	for (;;) {
		if (waitpid(copy, &status, WNOHANG) == copy)
			return failed(ends[0], status);
		if (exos_service(name, &found) == 0 && found.pid == (uint32_t)copy)
			return 0;
		usleep(2000);
	}
}
