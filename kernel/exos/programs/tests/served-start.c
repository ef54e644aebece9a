/* Programs and scripts that start from a server's files, and nonsense that does not. */
#include "check.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <exos/process.h>

#include "server.h"

extern char **environ;

static char bytes[1 << 20];

static long get(const char *name)
{
	int file = open(name, O_RDONLY);
	long got = read(file, bytes, sizeof bytes - 1);
	close(file);
	bytes[got < 0 ? 0 : got] = 0;
	return got;
}

static int put(const char *name, const char *what, size_t length, int mode)
{
	int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, mode);
	int well = write(file, what, length) == (ssize_t)length;
	return close(file) == 0 && well;
}

/* Runs it with the output in a file; its status, or minus what was wrong. */
static int run(char **words)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		int out = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
		dup2(out, 1);
		execve(words[0], words, environ);
		_exit(errno);
	}
	if (pid < 0)
		return -1;
	for (int round = 0; waitpid(pid, &status, WNOHANG) != pid; round++) {
		usleep(1000);
		if (round == 300)
			kill(pid, SIGKILL);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

#define RUNS(...) run((char *[]){ __VA_ARGS__, NULL })

static int said(const char *wanted)
{
	return get("out") == (long)strlen(wanted) && !strcmp(bytes, wanted);
}

static void programs_start(void)
{
	long length = get("/bin/echo");
	CHECK(length > 4096 && put("echo", bytes, length, 0755) && put("not", bytes, length, 0644));
	CHECK(RUNS("./echo", "a", "b c") == 0 && said("a b c\n"));
	CHECK(RUNS("/served/../served/./echo", "x") == 0 && said("x\n"));
	CHECK(RUNS("./not") == EACCES && RUNS("./nothing") == ENOENT && RUNS(".") == EACCES);
	CHECK(symlink("echo", "link") == 0 && RUNS("./link", "by a link") == 0 && said("by a link\n"));
	/* It runs, and need not be there any more. */
	char *words[] = { "echo", "spawned", NULL };
	int status, former = dup(1), out = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	fflush(stdout);
	dup2(out, 1);
	pid_t pid = exos_spawn("./echo", words, environ);
	int gone = unlink("echo");
	dup2(former, 1);
	CHECK(close(former) == 0 && close(out) == 0 && pid > 0 && gone == 0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0 && said("spawned\n"));
	CHECK(RUNS("./link") == ENOENT);
}

static int script(const char *text)
{
	return put("script", text, strlen(text), 0755);
}

static void scripts_start(void)
{
	CHECK(script("#!/bin/echo\nnothing\n") && RUNS("./script", "x", "y") == 0 && said("./script x y\n"));
	CHECK(script("#! /bin/echo  one two \n") && RUNS("./script", "x") == 0 && said("one two ./script x\n"));
	CHECK(script("#!/bin/sh\necho in a script: $1\nexit 7\n") && RUNS("./script", "x") == 7 && said("in a script: x\n"));
	CHECK(script("#!/bin/echo") && RUNS("./script") == 0 && said("./script\n"));
	CHECK(script("#!") && RUNS("./script") == ENOEXEC && script("#!  \n") && RUNS("./script") == ENOEXEC);
	CHECK(script("#!/no/such\n") && RUNS("./script") == ENOENT);
	CHECK(script("#!/served/script\n") && RUNS("./script") == ENOEXEC);
	CHECK(script("") && RUNS("./script") == ENOEXEC && script("echo") && RUNS("./script") == ENOEXEC);
	memset(bytes, 'x', 400);
	bytes[400] = 0;
	memcpy(bytes, "#!/bin/echo ", 12);
	CHECK(script(bytes) && RUNS("./script") == ENOEXEC);
}

/* Bits that are wrong, and ends that are missing: whatever starts is a process, and ends. */
static void nonsense_harms_nobody(void)
{
	uint64_t state = 5;
	long length = get("/bin/true"), started = 0;
	static char good[1 << 20];
	CHECK(length > 4096);
	memcpy(good, bytes, length);
	for (int round = 0; round < 60; round++) {
		memcpy(bytes, good, length);
		for (int flip = 0; flip <= round % 3; flip++) {
			state = state * 6364136223846793005ull + 1442695040888963407ull;
			/* Of the headers, mostly. */
			bytes[(state >> 33) % (flip == 2 ? length : 700)] ^= 1 << (state >> 24) % 8;
		}
		long now = round % 5 ? length : (long)((state >> 30) % length);
		CHECK(put("bad", bytes, now, 0755));
		int status = RUNS("./bad");
		started += status == 0;
		CHECK(get("/bin/true") == length && !memcmp(bytes, good, length));
	}
	CHECK(started > 3 && unlink("bad") == 0);
}

int main(void)
{
	pid_t child = server("/served", 4096);
	if (child < 0 || chdir("/served"))
		return 2;
	RUN(programs_start);
	RUN(scripts_start);
	RUN(nonsense_harms_nobody);
	server_ends(child);
	return failures ? 1 : 0;
}
