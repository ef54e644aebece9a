/* From addresses to files: folders that lie elsewhere. */
#include "module.h"

FOLDERS({TEXT("/images/"), 2}, {TEXT("/docs/"), 3})

static const struct {
	struct text from, to;
} aliases[] = {
	{TEXT("/icons/"), TEXT("/usr/share/icons/")},
	{TEXT("/docs/"), TEXT("/srv/docs/")},
	{TEXT("/images/"), TEXT("/srv/images/")},
	{TEXT("/"), TEXT("/srv/www/")},
};

POSTERN_EXPORT int translate(const struct request *r)
{
	/* What comes after a question mark is not part of the name. */
	long question = find(r->uri, TEXT("?"));
	unsigned long size = question < 0 ? r->uri.size : (unsigned long)question;
	for (unsigned long k = 0; k < sizeof aliases / sizeof *aliases; k++)
		if (begins((struct text){r->uri.at, size}, aliases[k].from)) {
			struct writer w = {r->outbox, 0};
			add(&w, aliases[k].to);
			add(&w, (struct text){r->uri.at + aliases[k].from.size, size - aliases[k].from.size});
			server_put(FILE_NAME, 0, (unsigned)w.size);
			return DECLINED;
		}
	return DECLINED;
}
