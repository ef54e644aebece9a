/* sets.h: sets of calls as strace's -e names them: names, and the classes %file, %network, %process,
 * %desc, %signal, %memory; `all`, `none`; in front of the first a `!`, which means all others. */
#ifndef SETS_H
#define SETS_H

#include "kinds.h"
#include "names.h"
#include <string.h>

/* Which calls are in it, by number. */
typedef unsigned char call_set[CALLS];

/* Adds what one name means, or takes it out. 0: nothing has this name. */
static inline int set_name(unsigned char *set, const char *name, int in)
{
	static const struct {
		const char *name;
		unsigned class;
	} classes[] = {
		{"%file", FILES}, {"%network", NETWORK}, {"%net", NETWORK}, {"%process", PROCESS},
		{"%desc", DESCRIPTORS}, {"%signal", SIGNALS}, {"%memory", MEMORY},
	};
	int found = strcmp(name, "none") == 0;
	if (strcmp(name, "all") == 0) {
		memset(set, in, CALLS);
		found = 1;
	}
	for (unsigned at = 0; at < sizeof classes / sizeof classes[0]; at++)
		for (unsigned call = 0; call < CALLS && strcmp(classes[at].name, name) == 0; call++)
			if (classes_of(call) & classes[at].class) {
				set[call] = in;
				found = 1;
			}
	/* A name behind a `?` may be one of another kernel's. */
	int optional = name[0] == '?';
	for (unsigned call = 0; call < CALLS; call++)
		if (call_names[call] && strcmp(call_names[call], name + optional) == 0) {
			set[call] = in;
			found = 1;
		}
	return found || optional;
}

/* The set of names between commas, which are taken apart. What nothing has as its name, or a null
 * pointer. */
static inline const char *set_of(unsigned char *set, char *names)
{
	int others = *names == '!';
	names += others;
	memset(set, others, CALLS);
	for (char *next = names; next; names = next) {
		next = strchr(names, ',');
		if (next)
			*next++ = 0;
		if (!set_name(set, names, !others))
			return names;
	}
	return 0;
}

#endif
