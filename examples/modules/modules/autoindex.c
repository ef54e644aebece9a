/* A folder without a page of its own: says so in one. */
#include "module.h"

POSTERN_EXPORT int handle(const struct request *r)
{
	struct writer w = {r->outbox, 0};
	add(&w, TEXT("<html><title>Index of "));
	for (unsigned long k = 0; k < r->uri.size && k < 1000; k++)
		switch (r->uri.at[k]) {
		case '<': add(&w, TEXT("&lt;")); break;
		case '&': add(&w, TEXT("&amp;")); break;
		default: add(&w, (struct text){r->uri.at + k, 1});
		}
	add(&w, TEXT("</title></html>\n"));
	server_put(BODY, 0, (unsigned)w.size);
	return DONE;
}
