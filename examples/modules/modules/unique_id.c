/* Gives every request a name of its own, for logs and for whoever asks what became of it. */
#include "module.h"

FOLDERS({TEXT("/private/"), 2})

static char name[16];

POSTERN_EXPORT int post_read(const struct request *r)
{
	unsigned long h = hash(hash(SEED + r->number, r->address), r->uri);
	for (unsigned long k = 0; k < r->count; k++)
		h = hash(hash(h, r->header[k].name), r->header[k].value);
	struct writer w = {name, 0};
	add_hex(&w, h);
	put(r, VARIABLE, TEXT("UNIQUE_ID"), (struct text){name, sizeof name});
	return DECLINED;
}

POSTERN_EXPORT int respond_headers(const struct request *r)
{
	put(r, RESPONSE, TEXT("X-Request-Id"), (struct text){name, sizeof name});
	return DECLINED;
}
