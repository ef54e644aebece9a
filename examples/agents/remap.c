/* remap.c: an agent that puts other files in the place of a program's.
 *
 *     postern cc -O2 remap.c -o remap.px
 *     postern interpose remap.px /etc/hosts=./my-hosts /usr/share/=/opt/share/ -- cat /etc/hosts
 *
 * A rule is FROM=TO. A FROM that ends with a slash is a prefix, and means all below it (TO is a folder
 * then); any other is one path. The first rule that fits counts. Relative paths in rules begin where
 * the first program does, and those of the program from where it is, or from its descriptor: both are
 * compared without `.`, `..` and double slashes, and links are not followed first. What a link leads to
 * is found by the kernel. Programs that are executed are remapped, and keep their first argument.
 *
 *   -v    prints each path that was remapped */
#include "names.h"
#include "paths.h"
#include <stdlib.h>

enum { RULES = 64, ROOM = 512 };
static struct {
	char from[ROOM], to[ROOM];
	unsigned length;
} rules[RULES];
static unsigned rule_count;
static int says;

static void fail(const char *what, const char *which)
{
	struct line line = {0};
	put(&line, "remap: %s %s", what, which);
	put_out(&line);
	exit(1);
}

/* A rule's path, from the root. A slash at its end stays. */
static void whole(const char *path, char *to)
{
	char text[PATH_ROOM];
	int start = path[0] == '/' ? 0 : path_of_folder(-100, text, sizeof text);
	unsigned length = strlen(path);
	if (start < 0 || start + length + 3 > ROOM)
		fail("a path that is too long:", path);
	snprintf(text + start, sizeof text - start, "/%s", path);
	path_normal(text);
	strcpy(to, text);
	if (length > 1 && path[length - 1] == '/' && to[1])
		strcat(to, "/");
}

void pt_agent_begin(void)
{
	char word[2 * ROOM];
	for (unsigned at = 0; pt_argument(at, word, sizeof word) >= 0; at++) {
		if (strcmp(word, "-v") == 0) {
			says = 1;
			continue;
		}
		char *to = strchr(word, '=');
		if (!to || to == word || !to[1])
			fail("no rule (FROM=TO):", word);
		if (rule_count == RULES)
			fail("there are more than 64 rules:", word);
		*to++ = 0;
		whole(word, rules[rule_count].from);
		whole(to, rules[rule_count].to);
		unsigned length = strlen(rules[rule_count].from);
		rules[rule_count].length = length;
		/* Below a prefix, so is what it leads to. */
		char *end = rules[rule_count].to + strlen(rules[rule_count].to) - 1;
		if (rules[rule_count].from[length - 1] == '/' && *end != '/')
			strcpy(end + 1, "/");
		rule_count++;
	}
}

/* What a path becomes: its length, or 0. */
static unsigned becomes(const char *path, char *to)
{
	for (unsigned at = 0; at < rule_count; at++) {
		unsigned length = rules[at].length;
		int prefix = rules[at].from[length - 1] == '/';
		if (prefix && strncmp(path, rules[at].from, length) == 0)
			return snprintf(to, PATH_ROOM, "%s%s", rules[at].to, path + length);
		/* The folder itself. */
		if (prefix && strncmp(path, rules[at].from, length - 1) == 0 && path[length - 1] == 0)
			return snprintf(to, PATH_ROOM, "%s", rules[at].to);
		if (!prefix && strcmp(path, rules[at].from) == 0)
			return snprintf(to, PATH_ROOM, "%s", rules[at].to);
	}
	return 0;
}

/* Other paths lie where the program's threads find them while the call is made: in a ring of places
 * that all have. A call that waits for longer than as many others begin has its path read long
 * before. */
enum { PLACES = 1024 };
static char ring[PLACES][PATH_ROOM];
static unsigned next;

int pt_agent(struct pt_call *call)
{
	const struct path_call *which = paths_of(call->number);
	char given[PATH_ROOM], path[PATH_ROOM], to[PATH_ROOM];
	for (unsigned at = 0; which && at < which->count; at++) {
		if (!path_whole(call, which, at, given, path))
			continue;
		unsigned length = becomes(path, to);
		if (length == 0)
			continue;
		if (length >= PATH_ROOM) {
			call->result = -36; /* ENAMETOOLONG */
			return PT_ANSWER;
		}
		char *place = ring[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % PLACES];
		memcpy(place, to, length + 1);
		call->arguments[which->paths[at].word] = pt_address(place);
		if (says) {
			struct line line = {0};
			put(&line, "remap: %s: %s is %s", call_name(call->number), given, to);
			put_out(&line);
		}
	}
	return PT_PASS;
}
