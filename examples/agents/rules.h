/* rules.h: rules of deny.c, from a file in a part of TOML: comments, `key = value` with strings,
 * arrays of strings, true and false, and `[[rule]]`. What is not known is an error. */
#ifndef RULES_H
#define RULES_H

#include "errors.h"
#include "line.h"
#include "sets.h"
#include <stdlib.h>

enum { RULES = 64, PATTERNS = 256, ROOM = 32 << 10 };

/* Globs of paths, or networks: places in `patterns`. */
struct range {
	unsigned first, count;
};

enum access { ANY, READS, WRITES };

static struct rule {
	int has_calls, allows, error;
	call_set calls;
	enum access access;
	struct range paths, networks;
	unsigned met;
} rules[RULES];
static unsigned rule_count;

static const char *patterns[PATTERNS];
static unsigned pattern_count;

/* What becomes of paths and networks that no rule fits, and whether refusals are only printed. */
static int allows_others = 1, others_error = 1, enforces = 1;

/* A file's text, of which strings are parts. */
static char rules_text[ROOM];

struct reader {
	char *at;
	unsigned line;
	const char *file;
};

static inline void rules_wrong(const struct reader *reader, const char *what, const char *which)
{
	struct line line = {0};
	put(&line, "deny: %s:%u: %s%s", reader->file, reader->line, what, which);
	put_out(&line);
	exit(1);
}

/* Over blanks and comments, and over lines' ends if so. */
static inline void rules_skip(struct reader *reader, int lines)
{
	for (;; reader->at++) {
		if (*reader->at == '#')
			while (reader->at[1] && reader->at[1] != '\n')
				reader->at++;
		else if (*reader->at == '\n' && lines)
			reader->line++;
		else if (*reader->at != ' ' && *reader->at != '\t' && *reader->at != '\r')
			return;
	}
}

static inline int rules_is(struct reader *reader, char byte)
{
	if (*reader->at != byte)
		return 0;
	reader->at++;
	return 1;
}

static inline char *rules_string(struct reader *reader)
{
	char quote = *reader->at, *start = ++reader->at, *to = start;
	if (quote != '"' && quote != '\'')
		rules_wrong(reader, "a string is wanted", "");
	for (; *reader->at != quote; reader->at++) {
		if (*reader->at == 0 || *reader->at == '\n')
			rules_wrong(reader, "a string does not end", "");
		if (quote == '"' && *reader->at == '\\') {
			reader->at++;
			if (*reader->at != '"' && *reader->at != '\\')
				rules_wrong(reader, "only \\\\ and \\\" are known", "");
		}
		*to++ = *reader->at;
	}
	reader->at++;
	*to = 0;
	return start;
}

/* The strings of an array: each one's meaning is added. */
static inline void rules_array(struct reader *reader, void (*add)(struct reader *, char *, struct rule *),
                               struct rule *rule)
{
	if (!rules_is(reader, '['))
		rules_wrong(reader, "an array of strings is wanted", "");
	for (;;) {
		rules_skip(reader, 1);
		if (rules_is(reader, ']'))
			return;
		add(reader, rules_string(reader), rule);
		rules_skip(reader, 1);
		if (!rules_is(reader, ',') && *reader->at != ']')
			rules_wrong(reader, "a comma or ] is wanted", "");
	}
}

static inline void add_call(struct reader *reader, char *name, struct rule *rule)
{
	if (!set_name(rule->calls, name, 1))
		rules_wrong(reader, "no such call or class: ", name);
	rule->has_calls = 1;
}

static inline void add_pattern(struct reader *reader, char *text, struct range *range)
{
	if (pattern_count == PATTERNS)
		rules_wrong(reader, "there are more than 256 patterns", "");
	if (range->count++ == 0)
		range->first = pattern_count;
	patterns[pattern_count++] = text;
}

static inline void add_path(struct reader *reader, char *text, struct rule *rule)
{
	if (text[0] != '/')
		rules_wrong(reader, "a path begins with /: ", text);
	add_pattern(reader, text, &rule->paths);
}

static inline void add_network(struct reader *reader, char *text, struct rule *rule)
{
	add_pattern(reader, text, &rule->networks);
}

static inline int rules_allow(struct reader *reader)
{
	char *word = rules_string(reader);
	if (strcmp(word, "allow") != 0 && strcmp(word, "deny") != 0)
		rules_wrong(reader, "\"allow\" or \"deny\" is wanted, not ", word);
	return word[0] == 'a';
}

static inline int rules_error(struct reader *reader)
{
	char *word = rules_string(reader);
	int error = error_number(word);
	if (!error)
		rules_wrong(reader, "no such error: ", word);
	return error;
}

static inline enum access rules_access(struct reader *reader)
{
	char *word = rules_string(reader);
	if (strcmp(word, "read") != 0 && strcmp(word, "write") != 0)
		rules_wrong(reader, "\"read\" or \"write\" is wanted, not ", word);
	return word[0] == 'r' ? READS : WRITES;
}

static inline int rules_true(struct reader *reader)
{
	int is = strncmp(reader->at, "true", 4) == 0;
	if (!is && strncmp(reader->at, "false", 5) != 0)
		rules_wrong(reader, "true or false is wanted", "");
	reader->at += is ? 4 : 5;
	return is;
}

/* One `key = value`, of a rule or in front of the first. */
static inline void rules_pair(struct reader *reader, struct rule *rule)
{
	char key[16];
	unsigned length = strspn(reader->at, "abcdefghijklmnopqrstuvwxyz-_");
	if (length == 0 || length >= sizeof key)
		rules_wrong(reader, "a key or [[rule]] is wanted", "");
	memcpy(key, reader->at, length);
	key[length] = 0;
	reader->at += length;
	rules_skip(reader, 0);
	if (!rules_is(reader, '='))
		rules_wrong(reader, "= is wanted behind ", key);
	rules_skip(reader, 0);
	if (rule && strcmp(key, "calls") == 0)
		rules_array(reader, add_call, rule);
	else if (rule && strcmp(key, "paths") == 0)
		rules_array(reader, add_path, rule);
	else if (rule && strcmp(key, "networks") == 0)
		rules_array(reader, add_network, rule);
	else if (rule && strcmp(key, "access") == 0)
		rule->access = rules_access(reader);
	else if (rule && strcmp(key, "verdict") == 0)
		rule->allows = rules_allow(reader);
	else if (rule && strcmp(key, "error") == 0)
		rule->error = rules_error(reader);
	else if (!rule && strcmp(key, "default") == 0)
		allows_others = rules_allow(reader);
	else if (!rule && strcmp(key, "error") == 0)
		others_error = rules_error(reader);
	else if (!rule && strcmp(key, "enforce") == 0)
		enforces = rules_true(reader);
	else
		rules_wrong(reader, rule ? "a rule has no " : "in front of the rules there is no ", key);
}

/* Adds a rule, which is empty. */
static inline struct rule *add_rule(void)
{
	if (rule_count == RULES)
		return 0;
	rules[rule_count].error = others_error;
	return &rules[rule_count++];
}

/* Reads a file of rules. */
static inline void read_rules(const char *file)
{
	enum { OPEN = 2, CLOSE = 3, PREAD = 17 };
	struct reader reader = {rules_text, 1, file};
	struct pt_call call = {.number = OPEN, .arguments = {pt_address(file)}};
	long opened = pt_syscall(&call);
	call = (struct pt_call){.number = PREAD, .arguments = {opened, pt_address(rules_text), ROOM}};
	long got = opened < 0 ? opened : pt_syscall(&call);
	if (got < 0)
		rules_wrong(&reader, "it cannot be read", "");
	if (got == ROOM)
		rules_wrong(&reader, "it has 32 KiB or more", "");
	call = (struct pt_call){.number = CLOSE, .arguments = {opened}};
	pt_syscall(&call);
	struct rule *rule = 0;
	for (;;) {
		rules_skip(&reader, 1);
		if (*reader.at == 0)
			break;
		if (strncmp(reader.at, "[[rule]]", 8) == 0) {
			reader.at += 8;
			rule = add_rule();
			if (!rule)
				rules_wrong(&reader, "there are more than 64 rules", "");
		} else
			rules_pair(&reader, rule);
		rules_skip(&reader, 0);
		if (*reader.at && *reader.at != '\n')
			rules_wrong(&reader, "something stands behind it", "");
	}
}

#endif
