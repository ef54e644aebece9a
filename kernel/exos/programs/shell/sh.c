/* A small shell: words and quotes, pipelines, `<`, `&`, `;`, scripts, a few commands of its own. It is a program like others: all that
   it does is fork, exec, pipe, dup2 and wait. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE = 512, WORDS = 64, STAGES = 8 };

extern char **environ;

/* A line that is being taken apart. */
struct words {
	char text[2 * LINE];
	char *word[WORDS + 1];
	/* Whether it was written without quotes, so that `|` and the like mean something. */
	int plain[WORDS];
	int count;
};

static int last_status;

/* Somebody sits there: each pipeline is a group of its own, which has the console while it runs. */
static int asks;

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "sh: %s: %s\n", what, why);
	return 1;
}

/* The words of a line; signs are words of their own. Below zero: it has too many, or a quote is open. */
static int split(const char *line, struct words *words)
{
	char *to = words->text;
	words->count = 0;
	for (;;) {
		while (*line == ' ' || *line == '\t')
			line++;
		if (*line == '\0' || *line == '\n' || *line == '#')
			break;
		if (words->count == WORDS)
			return complain("line", "too many words"), -1;
		words->word[words->count] = to;
		int plain = 1;
		if (strchr("|<&;", *line)) {
			*to++ = *line++;
		} else {
			while (*line && !strchr(" \t\n|<&;", *line)) {
				if (*line != '\'' && *line != '"') {
					*to++ = *line++;
					continue;
				}
				char quote = *line++;
				plain = 0;
				while (*line && *line != quote)
					*to++ = *line++;
				if (*line++ != quote)
					return complain("line", "a quote is open"), -1;
			}
		}
		*to++ = '\0';
		words->plain[words->count++] = plain;
	}
	words->word[words->count] = NULL;
	return words->count;
}

static int is_sign(const struct words *words, int at, char sign)
{
	const char *word = words->word[at];
	return words->plain[at] && word[0] == sign && word[1] == '\0';
}

/* How a process ended, as a number; says so if it was not by itself. */
static int told(const char *name, int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "sh: %s: %s\n", name, strsignal(WTERMSIG(status)));
		return 128 + WTERMSIG(status);
	}
	return 1;
}

/* Commands that change the shell itself. Below zero: it is none. */
static int builtin(char **word)
{
	if (!strcmp(word[0], "exit"))
		exit(word[1] ? atoi(word[1]) : last_status);
	if (!strcmp(word[0], "wait")) {
		int status;
		while (wait(&status) > 0)
			continue;
		return 0;
	}
	if (!strcmp(word[0], "kill")) {
		int by_name = word[1] && word[1][0] == '-';
		int number = by_name ? atoi(word[1] + 1) : SIGTERM;
		const char *whom = word[1 + by_name];
		if (!word[1] || !whom)
			return complain("kill", "kill [-SIGNAL] PID");
		return kill(atoi(whom), number) ? complain(whom, strerror(errno)) : 0;
	}
	if (!strcmp(word[0], "help")) {
		puts("COMMAND [WORD...] [< FILE] [| COMMAND...] [&], separated by `;`\n"
		     "exit [STATUS], wait, kill [-SIGNAL] PID, time COMMAND...\n"
		     "ls lists what can be run and read");
		return 0;
	}
	return -1;
}

/* One command of a pipeline, in a process of its own: never comes back. */
static void become(char **word, const char *input)
{
	if (asks)
		signal(SIGINT, SIG_DFL);
	if (input) {
		int file = open(input, O_RDONLY);
		if (file < 0) {
			complain(input, strerror(errno));
			_exit(1);
		}
		dup2(file, STDIN_FILENO);
		close(file);
	}
	execve(word[0], word, environ);
	complain(word[0], errno == ENOENT ? "no such program; `ls` lists them" : strerror(errno));
	_exit(127);
}

/* Runs commands that stand between signs; the status of the last one. */
static int pipeline(struct words *words, int from, int to, int background)
{
	pid_t pids[STAGES];
	const char *names[STAGES];
	int stages = 0, input = -1, status = 1;

	/* A sign with nothing beside it, before anybody runs. */
	for (int at = from, bars = 0; at < to; at++) {
		if (!is_sign(words, at, '|') && !is_sign(words, at, '<'))
			continue;
		if (at + 1 >= to || is_sign(words, at + 1, '|') || is_sign(words, at + 1, '<'))
			return complain(words->word[at], "something is missing behind it");
		if (words->word[at][0] == '|' && (at == from || ++bars == STAGES))
			return complain("|", at == from ? "a command is missing before it" : "too many of them");
	}
	for (int at = from; at < to;) {
		char *command[WORDS + 1];
		const char *file = NULL;
		int count = 0, ends[2] = {-1, -1};
		for (; at < to && !is_sign(words, at, '|'); at++) {
			if (is_sign(words, at, '<'))
				file = words->word[++at];
			else
				command[count++] = words->word[at];
		}
		command[count] = NULL;
		int more = at++ < to;
		if (count == 0) {
			complain("<", "a command is missing before it");
			break;
		}
		if (!more && stages == 0 && !background) {
			int done = builtin(command);
			if (done >= 0)
				return done;
		}
		if (more && pipe(ends) < 0) {
			complain("pipe", strerror(errno));
			break;
		}
		fflush(stdout);
		pid_t pid = fork();
		if (asks && pid >= 0)
			setpgid(pid, stages ? pids[0] : 0);
		if (pid == 0) {
			if (input >= 0) {
				dup2(input, STDIN_FILENO);
				close(input);
			}
			if (more) {
				close(ends[0]);
				dup2(ends[1], STDOUT_FILENO);
				close(ends[1]);
			}
			become(command, file);
		}
		if (input >= 0)
			close(input);
		if (more)
			close(ends[1]);
		input = ends[0];
		if (pid < 0) {
			complain("fork", strerror(errno));
			break;
		}
		names[stages] = command[0];
		pids[stages++] = pid;
	}
	/* Left over where something went wrong on the way. */
	if (input >= 0)
		close(input);
	if (background) {
		printf("[%d]\n", stages ? (int)pids[stages - 1] : 0);
		return 0;
	}
	if (asks && stages)
		tcsetpgrp(STDIN_FILENO, pids[0]);
	for (int stage = 0; stage < stages; stage++) {
		int how;
		if (waitpid(pids[stage], &how, 0) == pids[stage])
			status = told(names[stage], how);
	}
	if (asks)
		tcsetpgrp(STDIN_FILENO, getpgrp());
	return status;
}

static int timed(struct words *words, int from, int to, int background)
{
	if (from >= to || !words->plain[from] || strcmp(words->word[from], "time"))
		return pipeline(words, from, to, background);
	struct tms before, after;
	times(&before);
	int status = pipeline(words, from + 1, to, background);
	times(&after);
	printf("%ld slices\n", (long)(after.tms_cutime - before.tms_cutime));
	return status;
}

static void obey(const char *line)
{
	static struct words words;
	int count = split(line, &words);
	for (int from = 0, at = 0; from < count; from = at + 1) {
		for (at = from; at < count; at++)
			if (is_sign(&words, at, ';') || is_sign(&words, at, '&'))
				break;
		if (at > from)
			last_status = timed(&words, from, at, at < count && is_sign(&words, at, '&'));
	}
}

int main(int count, char **arguments)
{
	char line[LINE];
	FILE *from = stdin;
	if (count > 2 && !strcmp(arguments[1], "-c")) {
		obey(arguments[2]);
		return last_status;
	}
	if (count > 1 && !(from = fopen(arguments[1], "r"))) {
		complain(arguments[1], strerror(errno));
		return 127;
	}
	asks = from == stdin && isatty(STDIN_FILENO);
	if (asks)
		signal(SIGINT, SIG_IGN);
	for (;;) {
		if (asks) {
			fputs("$ ", stdout);
			fflush(stdout);
		}
		if (!fgets(line, sizeof line, from))
			return last_status;
		obey(line);
	}
}
