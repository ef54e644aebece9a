/* How many requests there were. */
#include "module.h"

POSTERN_EXPORT int handle(const struct request *r)
{
	struct writer w = {r->outbox, 0};
	add(&w, TEXT("requests: "));
	add_number(&w, r->number);
	add(&w, TEXT("\n"));
	server_put(BODY, 0, (unsigned)w.size);
	return DONE;
}
