/* A name for this very state of a file; who has it already need not get it again. */
#include "module.h"

FOLDERS({TEXT("/files/"), 2})

static char tag[18];
static int made;

POSTERN_EXPORT int fixup(const struct request *r)
{
	struct writer w = {r->outbox, 0};
	add(&w, r->file);
	long size = server_file_size((unsigned)w.size);
	made = size >= 0;
	if (!made)
		return DECLINED;
	w = (struct writer){tag, 0};
	add(&w, TEXT("\""));
	add_hex(&w, hash(hash(SEED + (unsigned long)size, r->file), r->body));
	add(&w, TEXT("\""));
	return same(header_of(r, TEXT("If-None-Match")), (struct text){tag, sizeof tag}) ? 304 : DECLINED;
}

POSTERN_EXPORT int respond_headers(const struct request *r)
{
	if (made)
		put(r, RESPONSE, TEXT("ETag"), (struct text){tag, sizeof tag});
	return DECLINED;
}

POSTERN_EXPORT int log_request(const struct request *r)
{
	put(r, LOG, TEXT("tag"), made ? (struct text){tag + 1, 16} : TEXT("-"));
	return DECLINED;
}
