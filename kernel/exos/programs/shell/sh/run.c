/* The tree, run. */
#include "sh.h"

#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STAGES = 16, DEPTH = 100 };

/* A function's tree lives in the arena of the line that had it, which is kept then. */
struct function {
	struct function *next;
	const char *name;
	struct node *body;
};

static struct function *functions;
static int keeps_arena;

void *find_function(const char *name)
{
	for (struct function *each = functions; each; each = each->next)
		if (!strcmp(each->name, name))
			return each->body;
	return NULL;
}

/* All of a name. What is freed here is not the tree, which may run. */
void forget_function(const char *name)
{
	for (struct function **at = &functions; *at;) {
		struct function *gone = *at;
		if (strcmp(gone->name, name)) {
			at = &gone->next;
			continue;
		}
		*at = gone->next;
		free(gone);
	}
}

/* How a process ended, as a number; says so if it was not by itself. */
static int told(const char *name, int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (WIFSIGNALED(status)) {
		if (WTERMSIG(status) != SIGPIPE)
			fprintf(stderr, "sh: %s: %s\n", name, strsignal(WTERMSIG(status)));
		return 128 + WTERMSIG(status);
	}
	return 1;
}

int wait_for(pid_t pid, const char *name)
{
	int how;
	pid_t ended;
	do
		ended = waitpid(pid, &how, 0);
	while (ended < 0 && errno == EINTR);
	return ended == pid ? told(name, how) : 127;
}

/* Becomes a program: one of a folder in PATH, if no folder is named. Text that is no program is the
   shell's. Comes back only if there is none, and has said why. */
void execute(char **word)
{
	const char *path = variable("PATH");
	char **variables = environment();
	int why = ENOENT;
	char *file = copied("", 0);
	if (!path)
		path = "/bin";
	if (strchr(word[0], '/')) {
		free(file);
		file = copied(word[0], strlen(word[0]));
		execve(file, word, variables);
		why = errno;
	} else {
		for (;; path++) {
			size_t length = strcspn(path, ":");
			size_t room = length + strlen(word[0]) + 2;
			free(file);
			file = get(room);
			snprintf(file, room, "%.*s%s%s", (int)length, path, length ? "/" : "", word[0]);
			execve(file, word, variables);
			if (errno != ENOENT && errno != ENOTDIR) {
				why = errno;
				break;
			}
			path += length;
			if (!*path)
				break;
		}
	}
	struct stat status;
	if (why == ENOEXEC && stat(file, &status) == 0 && S_ISREG(status.st_mode)) {
		int count = 0;
		while (word[count])
			count++;
		char **again = get((count + 2) * sizeof *again);
		again[0] = "sh";
		again[1] = file;
		memcpy(again + 2, word + 1, count * sizeof *again);
		execve("/bin/sh", again, variables);
	}
	free(file);
	if (!*word[0])
		why = ENOENT;
	complain(word[0], why == ENOENT ? "not found" : strerror(why));
	shell.status = why == ENOENT ? 127 : 126;
}

/* A process for a part of a command: 0 is the child. What is typed meanwhile to end it waits until it no
   longer ignores that, as the shell does. */
static pid_t start(pid_t group)
{
	sigset_t held, former;
	sigemptyset(&held);
	sigaddset(&held, SIGINT);
	sigaddset(&held, SIGTERM);
	fflush(stdout);
	sigprocmask(SIG_BLOCK, &held, &former);
	pid_t pid = fork();
	if (shell.asks && pid >= 0)
		setpgid(pid, group);
	if (pid == 0)
		become_child();
	sigprocmask(SIG_SETMASK, &former, NULL);
	if (pid == 0)
		return 0;
	if (pid < 0)
		complain("fork", strerror(errno));
	return pid;
}

/* Runs something in this process and ends it. */
static void finish(struct node *node)
{
	run(node, 1);
	leave_shell(shell.status);
}

static const char *name_of(const struct node *node)
{
	return node->kind == COMMAND && node->count > node->special ? node->words[node->special] : "sh";
}

/* Waits for processes that have the console meanwhile. The status of the last one. */
static int attend(pid_t *pids, const char **names, int count)
{
	int status = 1;
	if (shell.asks && count)
		tcsetpgrp(STDIN_FILENO, pids[0]);
	for (int each = 0; each < count; each++)
		status = wait_for(pids[each], names[each]);
	if (shell.asks)
		tcsetpgrp(STDIN_FILENO, getpgrp());
	return status;
}

static int pipeline(struct node *node)
{
	pid_t pids[STAGES];
	const char *names[STAGES];
	int count = 0, input = -1;
	for (struct node *stage = node->first; stage; stage = stage->next) {
		int ends[2] = {-1, -1};
		if (count == STAGES) {
			complain("|", "too many of them");
			break;
		}
		if (stage->next && pipe(ends) < 0) {
			complain("pipe", strerror(errno));
			break;
		}
		pid_t pid = start(count ? pids[0] : 0);
		if (pid == 0) {
			if (input >= 0) {
				dup2(input, STDIN_FILENO);
				close(input);
			}
			if (stage->next) {
				close(ends[0]);
				dup2(ends[1], STDOUT_FILENO);
				close(ends[1]);
			}
			finish(stage);
		}
		if (input >= 0)
			close(input);
		if (stage->next)
			close(ends[1]);
		input = ends[0];
		if (pid < 0)
			break;
		names[count] = name_of(stage);
		pids[count++] = pid;
	}
	/* Left over where something went wrong on the way. */
	if (input >= 0)
		close(input);
	return attend(pids, names, count);
}

/* One process for a part of a command. */
static int in_child(struct node *node)
{
	pid_t pid = start(0);
	const char *name = name_of(node);
	/* Whoever calls this has done the redirections. */
	if (pid == 0)
		finish(node->first);
	return pid < 0 ? 1 : attend(&pid, &name, 1);
}

/* Assignments before a command; `former` hears of what there was, to be put back. */
static void assign(char **words, int count, int exports, struct list *former)
{
	for (int each = 0; each < count && !shell.failed; each++) {
		size_t value = is_assignment(words[each]);
		char *name = copied(words[each], value - 1), *text = expand_one(words[each] + value);
		if (former) {
			const char *now = variable(name);
			list_add(former, copied(name, strlen(name)));
			list_add(former, now ? copied(now, strlen(now)) : NULL);
		}
		if (!shell.failed)
			set_variable(name, text);
		if (exports)
			export_variable(name);
		free(name);
		free(text);
	}
}

static void put_back(struct list *former)
{
	for (int each = former->count - 2; each >= 0; each -= 2) {
		if (former->item[each + 1])
			set_variable(former->item[each], former->item[each + 1]);
		else
			unset_variable(former->item[each]);
	}
	list_clear(former);
}

static int call(struct node *body, char **word, int count)
{
	struct list former = {0}, *locals = shell.locals;
	char **arguments = shell.arguments;
	int counted = shell.count, loops = shell.loops;
	if (shell.depth >= DEPTH)
		return complain(word[0], "too many functions in each other");
	shell.depth++;
	shell.arguments = word + 1;
	shell.count = count - 1;
	shell.loops = 0;
	shell.locals = &former;
	run(body, 0);
	put_back(&former);
	shell.locals = locals;
	shell.returns = 0;
	shell.arguments = arguments;
	shell.count = counted;
	shell.loops = loops;
	shell.depth--;
	return shell.status;
}

static void trace(struct list *fields)
{
	fputc('+', stderr);
	for (int each = 0; each < fields->count; each++)
		fprintf(stderr, " %s", fields->item[each]);
	fputc('\n', stderr);
}

/* A function or a command of the shell's own, in this process. */
static int inside(struct node *node, builtin *command, struct node *body, struct list *fields)
{
	struct list former = {0}, saved = {0};
	int stays = command && !strcmp(fields->item[0], "exec");
	int status = 2;
	if (redirect(node->redirects, stays ? NULL : &saved) == 0) {
		assign(node->words, node->special, 0, stays ? NULL : &former);
		if (!shell.failed)
			status = command ? command(fields->item, fields->count) : call(body, fields->item, fields->count);
	}
	fflush(stdout);
	put_back(&former);
	restore(&saved);
	return status;
}

static int command(struct node *node, int last)
{
	struct list fields = {0};
	int status = 0;
	shell.substituted = 0;
	expand(node->words + node->special, node->count - node->special, &fields);
	if (shell.failed) {
		status = 2;
	} else if (!fields.count) {
		struct list saved = {0};
		assign(node->words, node->special, 0, NULL);
		status = shell.failed || redirect(node->redirects, &saved) ? 2 : shell.substituted;
		restore(&saved);
	} else {
		struct node *body = find_function(fields.item[0]);
		builtin *own = body ? NULL : find_builtin(fields.item[0]);
		if (shell.traced)
			trace(&fields);
		if (body || own) {
			status = inside(node, own, body, &fields);
		} else {
			pid_t pid = last && !has_traps() ? 0 : start(0);
			const char *name = fields.item[0];
			if (pid == 0) {
				assign(node->words, node->special, 1, NULL);
				if (redirect(node->redirects, NULL) || shell.failed)
					_exit(2);
				execute(fields.item);
				_exit(shell.status);
			}
			status = pid < 0 ? 1 : attend(&pid, &name, 1);
		}
	}
	list_clear(&fields);
	return status;
}

static int leaves(void)
{
	return shell.breaks || shell.continues || shell.returns || shell.failed;
}

/* Whether a loop goes on after a round. */
static int goes_on(void)
{
	if (shell.continues && --shell.continues == 0)
		return 1;
	if (shell.breaks)
		shell.breaks--;
	else if (!shell.continues && !shell.returns && !shell.failed)
		return 1;
	return 0;
}

static int condition(struct node *node)
{
	shell.looked_at++;
	int status = run(node, 0);
	shell.looked_at--;
	return status;
}

static int loop(struct node *node)
{
	int status = 0;
	shell.loops++;
	for (;;) {
		int holds = condition(node->first) == 0;
		if (leaves()) {
			if (!goes_on())
				break;
			continue;
		}
		if (holds != (node->kind == WHILE))
			break;
		status = run(node->second, 0);
		if (leaves() && !goes_on())
			break;
	}
	shell.loops--;
	return status;
}

static int for_each(struct node *node)
{
	struct list fields = {0};
	int status = 0;
	if (node->special)
		expand(node->words, node->count, &fields);
	else
		for (int each = 0; each < shell.count; each++)
			list_add(&fields, copied(shell.arguments[each], strlen(shell.arguments[each])));
	shell.loops++;
	for (int each = 0; each < fields.count && !shell.failed; each++) {
		set_variable(node->name, fields.item[each]);
		status = run(node->first, 0);
		if (leaves() && !goes_on())
			break;
	}
	shell.loops--;
	list_clear(&fields);
	return status;
}

static int branch(struct node *node, int last)
{
	char *word = expand_one(node->name);
	int status = 0;
	for (struct node *each = node->first; each && !shell.failed; each = each->next) {
		int found = 0;
		for (int one = 0; one < each->count && !found; one++) {
			char *pattern = expand_pattern(each->words[one]);
			found = fnmatch(pattern, word, 0) == 0;
			free(pattern);
		}
		if (found) {
			status = each->first ? run(each->first, last) : 0;
			break;
		}
	}
	free(word);
	return status;
}

static int timed(struct node *node)
{
	struct timeval begin, end;
	struct tms before, after;
	gettimeofday(&begin, NULL);
	times(&before);
	int status = run(node->first, 0);
	times(&after);
	gettimeofday(&end, NULL);
	double real = end.tv_sec - begin.tv_sec + (end.tv_usec - begin.tv_usec) / 1e6;
	/* Its own and its children's: by the kernel's books, in which a slice is a tick of `times`. */
	long slices = after.tms_cutime - before.tms_cutime + after.tms_utime - before.tms_utime;
	double user = (double)slices / sysconf(_SC_CLK_TCK);
	fflush(stdout);
	if (node->special)
		fprintf(stderr, "real %.2f\nuser %.2f\nsys 0.00\n", real, user);
	else
		fprintf(stderr, "%.3f seconds, %.3f of the processor (%ld slices)\n", real, user, slices);
	return status;
}

static int background(struct node *node)
{
	pid_t pid = start(0);
	if (pid == 0)
		finish(node->first);
	if (pid > 0)
		shell.background = pid;
	if (shell.asks && pid > 0)
		printf("[%d]\n", (int)pid);
	return pid < 0;
}

static int define(struct node *node)
{
	struct function *function = get(sizeof *function);
	*function = (struct function){.next = functions, .name = node->name, .body = node->first};
	functions = function;
	keeps_arena = 1;
	return 0;
}

static int sequence(struct node *node, int last)
{
	int status = 0;
	for (struct node *each = node->first; each && !leaves(); each = each->next)
		status = run(each, last && !each->next);
	return status;
}

static int grouped(struct node *node, int last)
{
	/* Those of a command are its own affair. */
	struct list saved = {0};
	if (node->kind == COMMAND || node->kind == FUNCTION)
		return node->kind == COMMAND ? command(node, last) : define(node);
	if (node->redirects && redirect(node->redirects, last ? NULL : &saved)) {
		restore(&saved);
		return 2;
	}
	int status = 0;
	switch (node->kind) {
	case PIPELINE: status = pipeline(node); break;
	case NOT: status = !condition(node->first); break;
	case TIMED: status = timed(node); break;
	case AND:
		status = condition(node->first);
		if (status == 0 && !leaves())
			status = run(node->second, last);
		break;
	case OR:
		status = condition(node->first);
		if (status != 0 && !leaves())
			status = run(node->second, last);
		break;
	case SEQUENCE: status = sequence(node, last); break;
	case BACKGROUND: status = background(node); break;
	case IF:
		status = condition(node->first);
		if (leaves())
			break;
		if (status == 0)
			status = run(node->second, last);
		else
			status = node->third ? run(node->third, last) : 0;
		break;
	case WHILE: case UNTIL: status = loop(node); break;
	case FOR: status = for_each(node); break;
	case CASE: status = branch(node, last); break;
	case GROUP: status = run(node->first, last); break;
	case SUBSHELL:
		if (last)
			status = run(node->first, 1);
		else
			status = in_child(node);
		break;
	default: break;
	}
	restore(&saved);
	return status;
}

/* Runs something; its status. `last`: the process ends with it, so it need not be kept for more. */
int run(struct node *node, int last)
{
	int status = grouped(node, last);
	shell.status = status;
	int own = node->kind == COMMAND || node->kind == PIPELINE || node->kind == SUBSHELL;
	if (own && status && shell.strict && !shell.looked_at && !leaves()) {
		leave_shell(status);
	}
	if (trap_is_due())
		run_traps();
	return status;
}

/* One command, which may go on over several lines; 0: there is none any more. */
static int obey(struct input *input)
{
	struct arena arena = {0};
	char *text = input->next(input, 0);
	struct node *node = NULL;
	int outer = keeps_arena;
	if (!text)
		return 0;
	for (;;) {
		size_t length = strlen(text);
		char *whole = get(length + 2);
		memcpy(whole, text, length);
		strcpy(whole + length, "\n");
		struct lexer lexer = {.arena = &arena, .text = whole};
		node = parse_line(&lexer);
		if (lexer.wrong) {
			complain(lexer.wrong, "not expected here");
			shell.status = 2;
			shell.failed = 1;
		}
		char *more = lexer.open && !lexer.wrong ? input->next(input, 1) : NULL;
		if (lexer.open && !lexer.wrong && !more) {
			complain("end of file", "not expected here");
			shell.status = 2;
			shell.failed = 1;
		}
		if (!more) {
			free(whole);
			break;
		}
		arena_clear(&arena);
		free(text);
		text = get(length + strlen(more) + 2);
		sprintf(text, "%s%s", whole, more);
		free(whole);
		free(more);
	}
	free(text);
	keeps_arena = 0;
	if (node && node->first && (!shell.reads || shell.asks))
		run(node, 0);
	if (!keeps_arena)
		arena_clear(&arena);
	keeps_arena = outer;
	fflush(stdout);
	return 1;
}

/* All lines; the status of the last command. What goes wrong ends a script, and a line of who sits
   there. */
int run_input(struct input input)
{
	while (!shell.returns && !shell.breaks && obey(&input)) {
		if (shell.failed && !shell.asks) {
			leave_shell(shell.status ? shell.status : 2);
		}
		shell.failed = 0;
	}
	return shell.status;
}
