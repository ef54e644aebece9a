/* Other servers are not asked; what is said to whom would be asked is. */
#include "module.h"

POSTERN_EXPORT int handle(const struct request *r)
{
	struct writer w = {r->outbox, 0};
	if (!begins(r->uri, TEXT("http://")) || find(r->uri, TEXT("@")) >= 0)
		return 403;
	add(&w, TEXT("would ask "));
	for (unsigned long k = 7; k < r->uri.size && r->uri.at[k] != '/'; k++)
		add(&w, (struct text){r->uri.at + k, 1});
	add(&w, TEXT("\n"));
	server_put(BODY, 0, (unsigned)w.size);
	return DONE;
}
