/* Rewrites addresses by rules: a pattern with `*`, and what `$1` to `$9` stand for in its place. */
#include "module.h"

FOLDERS({TEXT("/private/"), 2})

static const struct {
	struct text pattern, by;
} rules[] = {
	{TEXT("/old/*"), TEXT("/docs/$1")},
	{TEXT("/news/*/*/*.html"), TEXT("/archive/$1-$2-$3.html")},
	{TEXT("/~*/public/*"), TEXT("/users/$1/$2")},
	{TEXT("/*.php"), TEXT("/$1.html")},
	{TEXT("/*.asp"), TEXT("/$1.html")},
	{TEXT("/wiki/*"), TEXT("/docs/wiki/$1.html")},
	{TEXT("/manual/*/chapter*"), TEXT("/docs/$1/$2.html")},
	{TEXT("/*/index.htm"), TEXT("/$1/index.html")},
	{TEXT("/en/*"), TEXT("/$1")},
	{TEXT("/download/*/latest"), TEXT("/files/$1-1.0.tar.gz")},
};

enum { PARTS = 9, DEEPEST = 24 };

static struct text part[PARTS];

static int matches(struct text pattern, struct text text, int n)
{
	while (pattern.size && *pattern.at != '*') {
		if (!text.size || *text.at != *pattern.at)
			return 0;
		pattern.at++, pattern.size--, text.at++, text.size--;
	}
	if (!pattern.size)
		return !text.size;
	if (n == PARTS)
		return 0;
	for (unsigned long size = 0; size <= text.size; size++)
		if (matches((struct text){pattern.at + 1, pattern.size - 1}, (struct text){text.at + size, text.size - size}, n + 1)) {
			part[n] = (struct text){text.at, size};
			return 1;
		}
	return 0;
}

static int changed;

POSTERN_EXPORT int translate(const struct request *r)
{
	changed = 0;
	for (unsigned long k = 0; k < sizeof rules / sizeof *rules; k++)
		if (matches(rules[k].pattern, r->uri, 0)) {
			struct writer w = {r->outbox, 0};
			struct text by = rules[k].by;
			for (unsigned long i = 0; i < by.size; i++)
				if (by.at[i] == '$' && i + 1 < by.size && by.at[i + 1] > '0' && by.at[i + 1] <= '9')
					add(&w, part[by.at[++i] - '1']);
				else
					add(&w, (struct text){by.at + i, 1});
			server_put(URI, 0, (unsigned)w.size);
			changed = 1;
			break;
		}
	return DECLINED;
}

POSTERN_EXPORT int fixup(const struct request *r)
{
	if (changed)
		put(r, VARIABLE, TEXT("REWRITTEN"), TEXT("1"));
	return DECLINED;
}

POSTERN_EXPORT int log_request(const struct request *r)
{
	put(r, LOG, TEXT("rewritten"), changed ? TEXT("yes") : TEXT("no"));
	return DECLINED;
}
