/* A name that does not exist, but does in lower case, leads there. */
#include "module.h"

FOLDERS({TEXT("/images/"), 2})

POSTERN_EXPORT int fixup(const struct request *r)
{
	struct writer w = {r->outbox, 0};
	add(&w, r->file);
	if (server_file_size((unsigned)w.size) >= 0)
		return DECLINED;
	w.size = 0;
	int upper = 0;
	for (unsigned long k = 0; k < r->file.size; k++) {
		char c = lower(r->file.at[k]);
		upper |= c != r->file.at[k];
		add(&w, (struct text){&c, 1});
	}
	if (!upper)
		return DECLINED;
	unsigned size = (unsigned)w.size;
	char name[256];
	if (size > sizeof name)
		return DECLINED;
	for (unsigned k = 0; k < size; k++)
		name[k] = r->outbox[k];
	if (server_file_size(size) < 0)
		return DECLINED;
	put(r, FILE_NAME, TEXT(""), (struct text){name, size});
	return DECLINED;
}
