/* A click on a picture: the file has lines of rectangles (x0 y0 x1 y1 address), the query the place. */
#include "module.h"

POSTERN_EXPORT int handle(const struct request *r)
{
	long question = find(r->uri, TEXT("?"));
	unsigned long at[6] = {0};
	if (question < 0)
		return 400;
	struct text query = {r->uri.at + question + 1, r->uri.size - (unsigned long)question - 1};
	int n = 4;
	for (unsigned long k = 0; k < query.size; k++)
		if (query.at[k] == ',' && n == 4)
			n++;
		else if (query.at[k] >= '0' && query.at[k] <= '9')
			at[n] = at[n] * 10 + (unsigned)(query.at[k] - '0');
		else
			return 400;
	struct text rest = r->body;
	for (long end; (end = find(rest, TEXT("\n"))) >= 0; rest.at += end + 1, rest.size -= (unsigned long)end + 1) {
		unsigned long k = 0;
		for (n = 0; n < 4; n++, k++)
			for (at[n] = 0; k < (unsigned long)end && rest.at[k] != ' '; k++)
				at[n] = at[n] * 10 + (unsigned)(rest.at[k] - '0');
		if (k < (unsigned long)end && at[4] >= at[0] && at[4] < at[2] && at[5] >= at[1] && at[5] < at[3]) {
			put(r, RESPONSE, TEXT("Location"), (struct text){rest.at + k, (unsigned long)end - k});
			return 302;
		}
	}
	return 404;
}
