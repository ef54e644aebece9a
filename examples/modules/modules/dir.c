/* A folder's own page. */
#include "module.h"

FOLDERS({TEXT("/docs/"), 2})

POSTERN_EXPORT int translate(const struct request *r)
{
	if (!ends(r->file, TEXT("/")))
		return DECLINED;
	static const struct text pages[] = {TEXT("index.html"), TEXT("index.htm"), TEXT("default.html")};
	for (int k = 0; k < 3; k++) {
		struct writer w = {r->outbox, 0};
		add(&w, r->file);
		add(&w, pages[k]);
		unsigned size = (unsigned)w.size;
		if (server_file_size(size) >= 0) {
			server_put(FILE_NAME, 0, size);
			return DECLINED;
		}
	}
	return DECLINED;
}
