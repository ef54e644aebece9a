/* deny.c: an agent that refuses calls by name, or by rules in a file, and says what was tried.
 *
 *     postern cc -O2 deny.c -o deny.px
 *     postern interpose deny.px unlink unlinkat=EACCES -- rm file
 *     postern interpose deny.px rules.toml -- make
 *
 * Without an error's name it is EPERM. The first rule that fits counts: one fits if all fit that it
 * has of `calls`, `paths`, `networks` and `access`. This keeps programs from what they do by mistake;
 * a program that means to can go around it. */
#include "paths.h"
#include "rules.h"

enum { OPEN = 2, CONNECT = 42, SENDTO = 44, SENDMSG = 46, BIND = 49, OPENAT = 257 };

static void name_call(char *text)
{
	char *equals = strchr(text, '=');
	if (equals)
		*equals++ = 0;
	struct reader reader = {text, 0, "arguments"};
	struct rule *rule = add_rule();
	if (!rule)
		rules_wrong(&reader, "there are more than 64 rules", "");
	add_call(&reader, text, rule);
	rule->error = equals ? error_number(equals) : 1;
	if (!rule->error)
		rules_wrong(&reader, "no such error: ", equals);
}

void pt_agent_begin(void)
{
	char word[1024];
	for (unsigned at = 0; pt_argument(at, word, sizeof word) >= 0; at++) {
		unsigned length = strlen(word);
		if (length > 5 && strcmp(word + length - 5, ".toml") == 0)
			read_rules(word);
		else
			name_call(word);
	}
}

/* Whether a path is what a glob means: `*` and `?` stand for what is no slash, `**` for anything. */
static int fits(const char *glob, const char *path)
{
	for (; *glob; glob++, path++) {
		if (*glob == '*') {
			int all = glob[1] == '*';
			glob += 1 + all;
			for (;; path++) {
				if (fits(glob, path))
					return 1;
				if (*path == 0 || (*path == '/' && !all))
					return 0;
			}
		}
		if (*path == 0 || (*glob == '?' ? *path == '/' : *glob != *path))
			return 0;
	}
	return *path == 0;
}

/* Where a call connects to, in words: `10.0.0.1:80`, `unix:/path`, `[address]:port`; 0: nowhere. */
static int place_of(const struct pt_call *call, char *to, unsigned room)
{
	unsigned long at = call->arguments[1], bytes = call->arguments[2];
	unsigned char given[128] = {0};
	if (call->number == SENDTO) {
		at = call->arguments[4];
		bytes = call->arguments[5];
	} else if (call->number == SENDMSG) {
		unsigned long words[2];
		if (pt_program_read(at, words, sizeof words) != 0)
			return 0;
		at = words[0];
		bytes = words[1] & 0xffffffff;
	} else if (call->number != CONNECT && call->number != BIND)
		return 0;
	if (bytes > sizeof given - 1)
		bytes = sizeof given - 1;
	if (at == 0 || bytes < 2 || pt_program_read(at, given, bytes) != 0)
		return 0;
	unsigned port = given[2] << 8 | given[3];
	switch (given[0]) {
	case 1:
		/* Names that are no files' begin with a zero. */
		return snprintf(to, room, "unix:%s%s", given[2] ? "" : "@", given[2] ? given + 2 : given + 3);
	case 2:
		return snprintf(to, room, "%u.%u.%u.%u:%u", given[4], given[5], given[6], given[7], port);
	case 10: {
		unsigned done = snprintf(to, room, "[");
		for (unsigned byte = 8; byte < 24; byte += 2)
			done += snprintf(to + done, room - done, byte == 8 ? "%x" : ":%x",
			                 given[byte] << 8 | given[byte + 1]);
		return done + snprintf(to + done, room - done, "]:%u", port);
	}
	default:
		return 0;
	}
}

/* Four numbers between points. */
static char *four(char *text, unsigned *address)
{
	*address = 0;
	for (unsigned at = 0; at < 4; at++) {
		*address = *address << 8 | (strtoul(text, &text, 10) & 0xff);
		if (*text == '.')
			text++;
	}
	return text;
}

/* Whether a place is in a network: `10.0.0.0/8`, `10.0.0.0/8:443`, or a glob of other places. */
static int in_network(const char *network, const char *place)
{
	unsigned wanted, given, bits = 32, port = 0;
	if (network[0] < '0' || network[0] > '9' || place[0] < '0' || place[0] > '9')
		return fits(network, place);
	char *end = four((char *)network, &wanted);
	if (*end == '/')
		bits = strtoul(end + 1, &end, 10);
	if (*end == ':')
		port = strtoul(end + 1, &end, 10);
	char *behind = four((char *)place, &given);
	unsigned mask = bits == 0 ? 0 : bits < 32 ? ~0u << (32 - bits) : ~0u;
	return (wanted & mask) == (given & mask) && (port == 0 || port == strtoul(behind + 1, 0, 10));
}

/* Whether a call changes what its path means. */
static int writes(const struct pt_call *call)
{
	static const short always[] = {76,  82,  83,  84,  85,  86,  87,  88,  90,  92,  94,  132, 133, 188, 189, 197,
	                               198, 235, 258, 259, 260, 261, 263, 264, 265, 266, 268, 280, 316, 452};
	if (call->number == OPEN || call->number == OPENAT) {
		unsigned long flags = call->arguments[call->number == OPEN ? 1 : 2];
		return (flags & 3) != 0 || (flags & 01100) != 0;
	}
	for (unsigned at = 0; at < sizeof always / sizeof always[0]; at++)
		if (call->number == (unsigned long)always[at])
			return 1;
	return 0;
}

static int one_fits(const struct range *range, int is_path, const char *what)
{
	for (unsigned at = 0; at < range->count; at++) {
		const char *pattern = patterns[range->first + at];
		if (is_path ? fits(pattern, what) : in_network(pattern, what))
			return 1;
	}
	return 0;
}

/* The rule for a path or a place of a call, or for the call itself; a null pointer: none fits. */
static struct rule *rule_for(const struct pt_call *call, int is_path, const char *what)
{
	for (unsigned at = 0; at < rule_count; at++) {
		struct rule *rule = &rules[at];
		if (rule->has_calls && (call->number >= CALLS || !rule->calls[call->number]))
			continue;
		if (!rule->has_calls && !rule->paths.count && !rule->networks.count)
			continue;
		if (rule->access != ANY && (!is_path || !what || (rule->access == WRITES) != writes(call)))
			continue;
		if (rule->paths.count && (!is_path || !what || !one_fits(&rule->paths, 1, what)))
			continue;
		if (rule->networks.count && (is_path || !what || !one_fits(&rule->networks, 0, what)))
			continue;
		return rule;
	}
	return 0;
}

/* Whether this is refused; then it says so. */
static int refuses(struct pt_call *call, int is_path, const char *what)
{
	struct rule *rule = rule_for(call, is_path, what);
	int allows = rule ? rule->allows : !what || allows_others;
	int error = rule ? rule->error : others_error;
	if (rule)
		__atomic_fetch_add(&rule->met, 1, __ATOMIC_RELAXED);
	if (allows)
		return 0;
	struct line line = {0};
	const char *name = call_name(call->number);
	put(&line, "deny: %s %s", enforces ? "refused" : "would refuse", name ? name : "a call");
	if (what)
		put(&line, " of %s", what);
	put(&line, " by process %u", pt_process());
	put_out(&line);
	call->result = -error;
	return enforces;
}

int pt_agent(struct pt_call *call)
{
	char given[PATH_ROOM], path[PATH_ROOM];
	const struct path_call *which = paths_of(call->number);
	unsigned seen = 0;
	for (unsigned at = 0; which && at < which->count; at++)
		if (path_whole(call, which, at, given, path)) {
			seen++;
			if (refuses(call, 1, path))
				return PT_ANSWER;
		}
	if (place_of(call, path, sizeof path)) {
		seen++;
		if (refuses(call, 0, path))
			return PT_ANSWER;
	}
	/* One without either. */
	return !seen && refuses(call, 0, 0) ? PT_ANSWER : PT_PASS;
}

void pt_agent_end(void)
{
	for (unsigned at = 0; at < rule_count; at++) {
		struct line line = {0};
		if (rules[at].met == 0)
			continue;
		put(&line, "deny: rule %u, which %s, fitted %u times", at + 1, rules[at].allows ? "allows" : "denies",
		    rules[at].met);
		put_out(&line);
	}
}
