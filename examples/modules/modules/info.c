/* What came with the request. */
#include "module.h"

POSTERN_EXPORT int handle(const struct request *r)
{
	struct writer w = {r->outbox, 0};
	for (unsigned long k = 0; k < r->count; k++) {
		add(&w, r->header[k].name);
		add(&w, TEXT("\n"));
	}
	server_put(BODY, 0, (unsigned)w.size);
	return DONE;
}
