/* Commands that change the shell itself. */
#include "sh.h"
#include "../../tools/signals.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOURCES = 20 };

static int nothing(char **word, int count)
{
	(void)word, (void)count;
	return 0;
}

static int no(char **word, int count)
{
	(void)word, (void)count;
	return 1;
}

static int leave(char **word, int count)
{
	int status = count > 1 ? atoi(word[1]) : shell.status;
	leave_shell(status);
}

static int wait_command(char **word, int count)
{
	int status = 0, how;
	pid_t ended;
	if (count == 1) {
		while ((ended = waitpid(-1, &how, 0)) > 0 || (ended < 0 && errno == EINTR && !trap_is_due()))
			continue;
		return trap_is_due() ? 128 + trap_is_due() : 0;
	}
	for (int each = 1; each < count && !trap_is_due(); each++)
		status = wait_for(atoi(word[each]), word[each]);
	return trap_is_due() ? 128 + trap_is_due() : status;
}

static int kill_command(char **word, int count)
{
	return kill_by_words(word, count, complain);
}

static int change_folder(char **word, int count)
{
	const char *to = count > 1 ? word[1] : variable("HOME");
	char now[1024];
	if (!to)
		to = "/";
	if (!strcmp(to, "-")) {
		to = variable("OLDPWD");
		if (!to)
			return complain("cd", "there is no former folder");
		puts(to);
	}
	char *whole = copied(to, strlen(to));
	int known = getcwd(now, sizeof now) != NULL;
	int failed = chdir(whole) ? complain(whole, strerror(errno)) : 0;
	if (!failed && known)
		set_variable("OLDPWD", now);
	if (!failed && getcwd(now, sizeof now))
		set_variable("PWD", now);
	free(whole);
	return failed;
}

static int print_folder(char **word, int count)
{
	char now[1024];
	(void)word, (void)count;
	if (!getcwd(now, sizeof now))
		return complain("pwd", strerror(errno));
	puts(now);
	return 0;
}

/* export, readonly and local, each with NAME or NAME=VALUE. */
static int mark_command(char **word, int count)
{
	char what = word[0][0];
	if (what == 'l' && !shell.locals)
		return complain(word[0], "it is for functions");
	if (what != 'l' && (count == 1 || !strcmp(word[1], "-p"))) {
		print_variables(what);
		return 0;
	}
	for (int each = 1; each < count && !shell.failed; each++) {
		size_t value = is_assignment(word[each]);
		char *name = copied(word[each], value ? value - 1 : strlen(word[each]));
		if (what == 'l') {
			const char *now = variable(name);
			list_add(shell.locals, copied(name, strlen(name)));
			list_add(shell.locals, now ? copied(now, strlen(now)) : NULL);
		}
		if (value)
			set_variable(name, word[each] + value);
		if (what == 'e')
			export_variable(name);
		if (what == 'r')
			make_readonly(name);
		free(name);
	}
	return 0;
}

static int unset_command(char **word, int count)
{
	int functions = count > 1 && !strcmp(word[1], "-f");
	for (int each = 1; each < count; each++) {
		if (word[each][0] == '-')
			continue;
		if (functions)
			forget_function(word[each]);
		else
			unset_variable(word[each]);
	}
	return 0;
}

static int times_command(char **word, int count)
{
	struct tms all;
	double second = sysconf(_SC_CLK_TCK);
	(void)word, (void)count;
	times(&all);
	printf("%.2fs %.2fs\n%.2fs %.2fs\n", all.tms_utime / second, all.tms_stime / second, all.tms_cutime / second,
	       all.tms_cstime / second);
	return 0;
}

static int echo_command(char **word, int count)
{
	int bare = count > 1 && !strcmp(word[1], "-n");
	for (int each = 1 + bare; each < count; each++)
		printf(each + 1 < count ? "%s " : "%s", word[each]);
	if (!bare)
		putchar('\n');
	return fflush(stdout) ? complain("echo", strerror(errno)) : 0;
}

/* Other arguments; those of the command line are nobody's to free, and these live as long as any
   function that has been called. */
static void set_arguments(char **word, int count)
{
	char **all = get((count + 1) * sizeof *all);
	for (int each = 0; each < count; each++)
		all[each] = copied(word[each], strlen(word[each]));
	all[count] = NULL;
	shell.arguments = all;
	shell.count = count;
}

static int set_command(char **word, int count)
{
	int at = 1;
	if (count == 1)
		print_variables(0);
	for (; at < count && (word[at][0] == '-' || word[at][0] == '+') && word[at][1]; at++) {
		if (!strcmp(word[at], "--")) {
			set_arguments(word + at + 1, count - at - 1);
			return 0;
		}
		const char *letters = word[at];
		int on = *letters == '-';
		while (*++letters) {
			if (*letters == 'o' && at + 1 == count)
				print_options();
			else if (*letters == 'o' ? !set_named_option(word[++at], on) : !set_option(*letters, on))
				return complain(word[at], "no such option");
		}
	}
	if (at < count)
		set_arguments(word + at, count - at);
	return 0;
}

static int shift_command(char **word, int count)
{
	int by = count > 1 ? atoi(word[1]) : 1;
	if (by < 0 || by > shell.count)
		return complain("shift", "there are not so many");
	shell.arguments += by;
	shell.count -= by;
	return 0;
}

/* More text in this shell, whose own end is not the shell's. */
static int more(struct input input)
{
	static int depth;
	if (depth >= SOURCES)
		return complain("source", "too many texts in each other");
	depth++;
	int asks = shell.asks;
	run_input(input);
	shell.asks = asks;
	depth--;
	return shell.status;
}

int run_text(const char *text)
{
	return more(input_of_text(text));
}

static int eval_command(char **word, int count)
{
	struct list all = {0};
	size_t length = 1;
	for (int each = 1; each < count; each++)
		length += strlen(word[each]) + 1;
	char *text = get(length);
	text[0] = '\0';
	for (int each = 1; each < count; each++) {
		strcat(text, word[each]);
		if (each + 1 < count)
			strcat(text, " ");
	}
	list_add(&all, text);
	shell.status = 0;
	int status = run_text(text);
	list_clear(&all);
	return status;
}

static int source_command(char **word, int count)
{
	if (count < 2)
		return complain(word[0], "a file is missing");
	int file = open(word[1], O_RDONLY);
	if (file < 0)
		return complain(word[1], strerror(errno));
	int high = fcntl(file, F_DUPFD, 10);
	if (high >= 0)
		close(file), file = high;
	fcntl(file, F_SETFD, FD_CLOEXEC);
	shell.status = 0;
	int status = more(input_of_file(file));
	close(file);
	shell.returns = 0;
	return status;
}

static int exec_command(char **word, int count)
{
	if (count == 1)
		return 0;
	if (shell.asks)
		signal(SIGINT, SIG_DFL);
	execute(word + 1);
	leave_shell(shell.status);
}

/* So many loops, of those that there are. */
static int rounds(char **word, int count, int *which)
{
	int all = count > 1 ? atoi(word[1]) : 1;
	if (all < 1)
		return complain(word[0], "it is no number of loops");
	*which = all < shell.loops ? all : shell.loops;
	return 0;
}

static int break_command(char **word, int count)
{
	return rounds(word, count, &shell.breaks);
}

static int continue_command(char **word, int count)
{
	return rounds(word, count, &shell.continues);
}

static int return_command(char **word, int count)
{
	shell.returns = 1;
	return count > 1 ? atoi(word[1]) & 255 : shell.status;
}

/* A byte of the input; below zero: its end. */
static int one_byte(void)
{
	char byte;
	ssize_t done;
	do
		done = read(STDIN_FILENO, &byte, 1);
	while (done < 0 && errno == EINTR);
	return done == 1 ? (unsigned char)byte : -1;
}

/* Where the last variable's value ends: before blanks, and before a sign between fields if it only ends
   the one. */
static size_t last_end(const char *line, const char *kept, size_t at, size_t end, const char *blanks)
{
#define PARTS(at) (!kept[at] && strchr(blanks, line[at]))
	while (end > at && PARTS(end - 1) && isspace((unsigned char)line[end - 1]))
		end--;
	if (end == at || !PARTS(end - 1))
		return end;
	for (size_t each = at; each < end - 1; each++)
		if (PARTS(each))
			return end;
	return end - 1;
}

/* A line into variables: words, and the last has what is left. */
static int read_command(char **word, int count)
{
	int raw = count > 1 && !strcmp(word[1], "-r"), first = 1 + raw, byte;
	const char *blanks = variable("IFS");
	char *line = get(1), *kept;
	size_t length = 0, room = 0;
	if (!blanks)
		blanks = " \t\n";
	/* Beside the line, which of its bytes a backslash has made plain. */
	kept = get(1);
	while ((byte = one_byte()) >= 0 && byte != '\n') {
		int plain = 0;
		if (byte == '\\' && !raw) {
			byte = one_byte();
			if (byte == '\n')
				continue;
			if (byte < 0)
				break;
			plain = 1;
		}
		if (length + 1 >= room) {
			room = room ? 2 * room : 128;
			line = realloc(line, room);
			kept = realloc(kept, room);
			if (!line || !kept)
				return complain("read", "there is no memory left");
		}
		kept[length] = plain;
		line[length++] = byte;
	}
	line[length] = '\0';
	size_t at = 0;
#define BLANK(at) ((at) < length && !kept[at] && strchr(blanks, line[at]))
#define SPACE(at) (BLANK(at) && isspace((unsigned char)line[at]))
	for (int each = first; each < count; each++) {
		while (SPACE(at))
			at++;
		size_t end = at;
		if (each + 1 == count) {
			end = last_end(line, kept, at, length, blanks);
		} else {
			while (end < length && !BLANK(end))
				end++;
		}
		char *value = copied(line + at, end - at);
		set_variable(word[each], value);
		free(value);
		at = end;
		while (SPACE(at))
			at++;
		if (BLANK(at))
			at++;
	}
	free(line);
	free(kept);
	return byte < 0;
}

/* What a name is: `command -v`. */
static int type_command(char **word, int count)
{
	int runs = !strcmp(word[0], "command"), asks = runs && count > 1 && !strcmp(word[1], "-v"), status = 0;
	if (runs && !asks) {
		builtin *own = count > 1 ? find_builtin(word[1]) : NULL;
		if (count == 1)
			return 0;
		if (own)
			return own(word + 1, count - 1);
		fflush(stdout);
		pid_t pid = fork();
		if (pid == 0) {
			execute(word + 1);
			_exit(shell.status);
		}
		return pid < 0 ? 1 : wait_for(pid, word[1]);
	}
	for (int each = 1 + asks; each < count; each++) {
		const char *path = variable("PATH");
		char file[600];
		snprintf(file, sizeof file, "%s", word[each]);
		if (find_function(word[each]) || find_builtin(word[each])) {
			puts(word[each]);
			continue;
		}
		int found = 0;
		for (path = path ? path : "/bin"; !found && !strchr(word[each], '/'); path++) {
			size_t length = strcspn(path, ":");
			snprintf(file, sizeof file, "%.*s/%s", (int)length, path, word[each]);
			found = access(file, F_OK) == 0;
			path += length;
			if (!*path)
				break;
		}
		found = found || (strchr(word[each], '/') && access(word[each], F_OK) == 0);
		if (found)
			puts(file);
		else
			status = 127;
	}
	return status;
}

static int help(char **word, int count)
{
	(void)word, (void)count;
	puts("COMMAND [WORD...] [< FILE] [> FILE] [>> FILE] [2>&1] [| COMMAND...] [&& COMMAND...] [&], separated by `;`\n"
	     "if LIST; then LIST; [else LIST;] fi    while LIST; do LIST; done    for NAME in WORD...; do LIST; done\n"
	     "case WORD in PATTERN) LIST;; esac    NAME() { LIST; }    { LIST; }    (LIST)    ! COMMAND    time COMMAND\n"
	     "$NAME ${NAME:-WORD} $(COMMAND) $((SUM)) $? $$ $! $# $1 \"$@\"   'QUOTES' \"QUOTES\" \\    * ? [a-z]    # comment\n"
	     ". : [ break cd command continue echo eval exec exit export false getopts hash help kill local pwd read\n"
	     "readonly return set shift source test times trap true type unset wait; `ls /bin` lists the programs");
	return 0;
}

builtin *find_builtin(const char *name)
{
	static const struct { const char *name; builtin *command; } ALL[] = {
		{":", nothing}, {"true", nothing}, {"false", no}, {"exit", leave}, {"wait", wait_command},
		{"kill", kill_command},
		{"cd", change_folder}, {"pwd", print_folder}, {"export", mark_command}, {"readonly", mark_command},
		{"local", mark_command}, {"unset", unset_command}, {"times", times_command},
		{"trap", trap_command}, {"getopts", getopts_command}, {"echo", echo_command}, {"hash", nothing},
		{"set", set_command}, {"shift", shift_command}, {"eval", eval_command}, {".", source_command},
		{"source", source_command}, {"exec", exec_command}, {"break", break_command}, {"continue", continue_command},
		{"return", return_command}, {"read", read_command}, {"test", test_command}, {"[", test_command},
		{"type", type_command}, {"command", type_command}, {"help", help},
	};
	for (size_t each = 0; each < sizeof ALL / sizeof *ALL; each++)
		if (!strcmp(ALL[each].name, name))
			return ALL[each].command;
	return NULL;
}
