/* A word as it was written to fields: parameters, commands and sums in it, then fields at blanks,
   then names of files. */
#include "sh.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What has come of a word so far. Bytes that were in quotes stand there with a backslash if they
   would mean something in a pattern. */
struct out {
	struct list *fields;
	char *text;
	size_t length, room;
	/* There is a field, though it may be empty. */
	int present;
	/* It has a `*`, `?` or `[` that means something. */
	int globs;
	/* Fields end at blanks of values; a blank has ended one. */
	int splits, blank;
	/* Within `${...}`: what is not quoted there is as a value. */
	int braces;
};

static const char SPECIAL[] = "*?[]\\!^-";

static void put_byte(struct out *out, char byte)
{
	if (out->length + 1 >= out->room) {
		size_t room = out->room ? 2 * out->room : 64;
		char *more = get(room);
		if (out->length)
			memcpy(more, out->text, out->length);
		free(out->text);
		out->text = more;
		out->room = room;
	}
	out->text[out->length++] = byte;
	out->text[out->length] = '\0';
}

static void put(struct out *out, char byte, int quoted)
{
	if ((quoted && strchr(SPECIAL, byte)) || byte == '\\')
		put_byte(out, '\\');
	else if (!quoted && strchr("*?[", byte))
		out->globs = 1;
	put_byte(out, byte);
	out->present = 1;
	out->blank = 0;
}

/* Takes the backslashes away. */
static char *plain(char *text)
{
	char *to = text;
	for (char *from = text; *from; from++) {
		if (*from == '\\' && from[1])
			from++;
		*to++ = *from;
	}
	*to = '\0';
	return text;
}

static void end_field(struct out *out, int forced)
{
	if (!out->present && !forced)
		return;
	if (!out->text)
		put_byte(out, 0), out->length = 0;
	glob_t found = {0};
	/* Some libraries call nothing an error, and some do not. */
	if (out->globs && !shell.plain && glob(out->text, 0, NULL, &found) == 0 && found.gl_pathc > 0) {
		for (size_t each = 0; each < (size_t)found.gl_pathc; each++)
			list_add(out->fields, copied(found.gl_pathv[each], strlen(found.gl_pathv[each])));
		globfree(&found);
	} else {
		list_add(out->fields, copied(plain(out->text), strlen(out->text)));
	}
	out->length = 0;
	out->text[0] = '\0';
	out->present = out->globs = 0;
}

static void put_value(struct out *out, const char *value, int quoted)
{
	const char *blanks = variable("IFS");
	if (!blanks)
		blanks = " \t\n";
	for (; *value; value++) {
		if (quoted || !out->splits || !strchr(blanks, *value)) {
			put(out, *value, quoted);
		} else if (isspace((unsigned char)*value)) {
			out->blank |= out->present;
			end_field(out, 0);
		} else {
			if (!out->blank)
				end_field(out, 1);
			out->blank = 0;
		}
	}
}

static void put_number(struct out *out, long long number, int quoted)
{
	char text[24];
	snprintf(text, sizeof text, "%lld", number);
	put_value(out, text, quoted);
}

static void walk(struct out *out, const char *at, const char *end, int quoted);

/* What stands behind the sign in `${NAME-WORD}`. */
static void walk_inside(struct out *out, const char *at, const char *end, int quoted)
{
	out->braces++;
	walk(out, at, end, quoted);
	out->braces--;
}

static char *expand_range(const char *from, const char *end, int quoted, int pattern)
{
	struct out out = {0};
	put_byte(&out, 0);
	out.length = 0;
	walk(&out, from, end, quoted);
	return pattern ? out.text : plain(out.text);
}

/* All that a command writes, without the newlines at its end. */
static void put_command(struct out *out, const char *text, int quoted)
{
	int ends[2], status;
	struct out all = {0};
	char bytes[512];
	ssize_t length;
	if (pipe(ends) < 0) {
		shell.failed = complain("pipe", strerror(errno));
		return;
	}
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		if (ends[1] != STDOUT_FILENO) {
			dup2(ends[1], STDOUT_FILENO);
			close(ends[1]);
		}
		become_child();
		run_input(input_of_text(text));
		leave_shell(shell.status);
	}
	close(ends[1]);
	while (pid > 0 && ((length = read(ends[0], bytes, sizeof bytes)) > 0 || (length < 0 && errno == EINTR)))
		for (ssize_t each = 0; each < length; each++)
			if (bytes[each])
				put_byte(&all, bytes[each]);
	close(ends[0]);
	if (pid < 0)
		shell.failed = complain("fork", strerror(errno));
	else if (waitpid(pid, &status, 0) == pid)
		shell.substituted = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	while (all.length && all.text[all.length - 1] == '\n')
		all.text[--all.length] = '\0';
	if (all.text)
		put_value(out, all.text, quoted);
	free(all.text);
}

/* `$@`, and `$*`, which is the same without quotes. */
static void put_arguments(struct out *out, char which, int quoted)
{
	const char *blanks = variable("IFS");
	for (int each = 0; each < shell.count; each++) {
		if (each && which == '*' && quoted) {
			if (!blanks || *blanks)
				put(out, blanks ? *blanks : ' ', 1);
		} else if (each && out->splits) {
			end_field(out, quoted);
		} else if (each) {
			put(out, ' ', 1);
		}
		put_value(out, shell.arguments[each], quoted);
		out->present |= quoted;
	}
}

/* The value of a parameter that is no `@` and no `*`; NULL: it is not set. `number` is for those that
   are made here. */
static const char *value_of(const char *name, char number[24])
{
	long long value;
	switch (*name) {
	case '?': value = shell.status; break;
	case '$': value = shell.self; break;
	case '#': value = shell.count; break;
	case '!':
		if (!shell.background)
			return NULL;
		value = shell.background;
		break;
	case '-':
		option_letters(number);
		return number;
	default:
		if (!isdigit((unsigned char)*name))
			return variable(name);
		value = atoi(name);
		if (value == 0)
			return shell.name;
		return value <= shell.count ? shell.arguments[value - 1] : NULL;
	}
	snprintf(number, 24, "%lld", value);
	return number;
}

static int name_length(const char *at)
{
	int length = 0;
	if (*at && strchr("?$#!-@*", *at))
		return 1;
	if (isdigit((unsigned char)*at))
		return 1;
	while (isalnum((unsigned char)at[length]) || at[length] == '_')
		length++;
	return length;
}

/* A value without what a pattern finds at its beginning or end: the shortest or the longest. */
static void put_cut(struct out *out, const char *value, const char *pattern, char side, int longest, int quoted)
{
	size_t length = strlen(value);
	for (size_t step = 0; step <= length; step++) {
		/* How much is left of it, from its end or its beginning. */
		size_t left = longest ? step : length - step;
		size_t at = length - left;
		char *piece = side == '#' ? copied(value, at) : copied(value + left, at);
		int found = fnmatch(pattern, piece, 0) == 0;
		free(piece);
		if (found) {
			piece = side == '#' ? copied(value + at, left) : copied(value, left);
			put_value(out, piece, quoted);
			free(piece);
			return;
		}
	}
	put_value(out, value, quoted);
}

/* `${...}`: what stands between the braces. */
static void put_braces(struct out *out, const char *at, const char *end, int quoted)
{
	char number[24];
	int counts = *at == '#' && at + 1 < end && at[1] != '}';
	at += counts;
	int length = isdigit((unsigned char)*at) ? (int)strspn(at, "0123456789") : name_length(at);
	if (!length || at + length > end) {
		shell.failed = complain(at, "no such parameter");
		return;
	}
	char *name = copied(at, length);
	int all = *name == '@' || *name == '*';
	const char *value = all ? (shell.count ? shell.arguments[0] : NULL) : value_of(name, number);
	at += length;
	int colon = *at == ':';
	int empty = !value || (colon && !*value);
	char what = at < end ? at[colon] : 0;
	const char *rest = at + colon + 1;
	if (counts) {
		put_number(out, all ? shell.count : value ? (long long)strlen(value) : 0, quoted);
	} else if (what == '+') {
		if (!empty)
			walk_inside(out, rest, end, quoted);
	} else if (what && strchr("-=?", what) && empty) {
		char *text = NULL;
		if (what != '-')
			text = expand_range(rest, end, quoted, 0);
		if (what == '-')
			walk_inside(out, rest, end, quoted);
		if (what == '=')
			set_variable(name, text), put_value(out, text, quoted);
		if (what == '?')
			shell.failed = complain(name, *text ? text : "parameter not set");
		free(text);
	} else if ((what == '#' || what == '%') && !colon) {
		int longest = rest < end && *rest == what;
		char *pattern = expand_range(rest + longest, end, 0, 1);
		put_cut(out, value ? value : "", pattern, what, longest, quoted);
		free(pattern);
	} else if (what && !strchr("-=?", what)) {
		shell.failed = complain(at, "no such substitution");
	} else if (all) {
		put_arguments(out, *name, quoted);
	} else if (value) {
		put_value(out, value, quoted);
	} else if (shell.bound) {
		shell.failed = complain(name, "parameter not set");
	}
	free(name);
}

/* What `$` begins; where it ends. */
static const char *dollar(struct out *out, const char *at, int quoted)
{
	char number[24];
	size_t length = dollar_end(at, 0);
	if (length == SIZE_MAX) {
		/* Only documents are not looked at before. */
		shell.failed = complain(at, "it is not closed");
		return at + strlen(at);
	}
	if (*at == '`') {
		const char *escaped = quoted == 1 ? "$`\\\"" : "$`\\";
		char *text = copied(at + 1, length - 2), *to = text;
		for (char *from = text; *from; *to++ = *from++)
			if (*from == '\\' && from[1] && strchr(escaped, from[1]))
				from++;
		*to = '\0';
		put_command(out, text, quoted);
		free(text);
		return at + length;
	}
	if (at[1] == '(' && at[2] == '(' && at[length - 2] == ')') {
		char *text = expand_range(at + 3, at + length - 2, 1, 0);
		if (!shell.failed)
			put_number(out, sum(text), quoted);
		free(text);
		return at + length;
	}
	if (at[1] == '(') {
		char *text = copied(at + 2, length - 3);
		put_command(out, text, quoted);
		free(text);
		return at + length;
	}
	if (at[1] == '{') {
		put_braces(out, at + 2, at + length - 1, quoted);
		return at + length;
	}
	int name = name_length(at + 1);
	if (!name) {
		put(out, '$', quoted);
		return at + 1;
	}
	if (at[1] == '@' || at[1] == '*') {
		put_arguments(out, at[1], quoted);
	} else {
		char *text = copied(at + 1, name);
		const char *value = value_of(text, number);
		if (value)
			put_value(out, value, quoted);
		else if (shell.bound)
			shell.failed = complain(text, "parameter not set");
		free(text);
	}
	return at + 1 + name;
}

/* A piece of a word. `quoted`: it stands in double quotes. */
static void walk(struct out *out, const char *at, const char *end, int quoted)
{
	while (at < end && !shell.failed) {
		if (*at == '\\' && at + 1 < end) {
			if (at[1] != '\n') {
				if (quoted && !strchr("$`\"\\", at[1]) && !(out->braces && at[1] == '}'))
					put(out, '\\', 1);
				put(out, at[1], 1);
			}
			at += 2;
		} else if (*at == '\'' && !quoted) {
			for (at++; at < end && *at != '\''; at++)
				put(out, *at, 1);
			at++;
			out->present = 1;
		} else if (*at == '"' && quoted < 2) {
			if (quoted) {
				/* The quotes within `"${a:-"b"}"` change nothing. */
				at++;
				continue;
			}
			size_t length = quoted_end(at, 1);
			const char *close = length == SIZE_MAX || at + length > end ? end : at + length - 1;
			/* "$@" of no arguments is no field at all. */
			int nothing = !shell.count && close - at == 3 && !strncmp(at + 1, "$@", 2);
			walk(out, at + 1, close, 1);
			out->present |= !nothing;
			at = close + 1;
		} else if (*at == '$' || *at == '`') {
			at = dollar(out, at, quoted);
		} else if (out->braces && !quoted) {
			put_value(out, (char[]){*at++, 0}, 0);
		} else {
			put(out, *at++, quoted);
		}
	}
}

/* The home's folder, if a word begins with `~`. */
static const char *home(struct out *out, const char *word)
{
	const char *home = variable("HOME");
	if (word[0] == '~' && (!word[1] || word[1] == '/') && home) {
		for (; *home; home++)
			put(out, *home, 1);
		return word + 1;
	}
	return word;
}

void expand(char **words, int count, struct list *fields)
{
	for (int each = 0; each < count && !shell.failed; each++) {
		struct out out = {.fields = fields, .splits = 1};
		const char *word = home(&out, words[each]);
		walk(&out, word, word + strlen(word), 0);
		end_field(&out, 0);
		free(out.text);
	}
}

static char *expand_whole(const char *word, int quoted, int pattern)
{
	struct out out = {0};
	put_byte(&out, 0);
	out.length = 0;
	word = quoted ? word : home(&out, word);
	walk(&out, word, word + strlen(word), quoted);
	return pattern ? out.text : plain(out.text);
}

/* One field, however many blanks it has. */
char *expand_one(const char *word)
{
	return expand_whole(word, 0, 0);
}

/* The same for `fnmatch`. */
char *expand_pattern(const char *word)
{
	return expand_whole(word, 0, 1);
}

/* A document, in which quotes are bytes as others. */
char *expand_document(const char *text)
{
	return expand_whole(text, 2, 0);
}
