/* A file that is its own answer: its head is lines of headers, up to an empty one. */
#include "module.h"

POSTERN_EXPORT int handle(const struct request *r)
{
	struct text rest = r->body;
	for (;;) {
		long end = find(rest, TEXT("\n"));
		if (end < 0)
			return 500;
		struct text line = {rest.at, (unsigned long)end};
		rest.at += end + 1, rest.size -= (unsigned long)end + 1;
		long colon = find(line, TEXT(": "));
		if (!line.size)
			break;
		if (colon < 0)
			return 500;
		put(r, RESPONSE, (struct text){line.at, (unsigned long)colon}, (struct text){line.at + colon + 2, line.size - (unsigned long)colon - 2});
	}
	put(r, BODY, TEXT(""), rest);
	return DONE;
}
