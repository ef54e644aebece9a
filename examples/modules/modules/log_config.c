/* The line of the log that everybody knows. */
#include "module.h"

FOLDERS({TEXT("/images/"), 2})

static unsigned long began;

POSTERN_EXPORT int post_read(const struct request *r)
{
	(void)r;
	began = server_seconds();
	return DECLINED;
}

POSTERN_EXPORT int log_request(const struct request *r)
{
	char line[1024];
	struct writer w = {line, 0};
	const struct text parts[] = {r->address, TEXT(" - "), r->user.size ? r->user : TEXT("-"), TEXT(" [")};
	for (int k = 0; k < 4; k++)
		if (w.size + parts[k].size < sizeof line / 2)
			add(&w, parts[k]);
	add_number(&w, began);
	add(&w, TEXT("] \""));
	if (r->method.size + r->uri.size < sizeof line / 2) {
		add(&w, r->method);
		add(&w, TEXT(" "));
		add(&w, r->uri);
	}
	add(&w, TEXT("\" "));
	add(&w, variable(r, TEXT("SITE")));
	add(&w, TEXT(" "));
	add(&w, variable(r, TEXT("UNIQUE_ID")));
	if (variable(r, TEXT("robot")).size)
		add(&w, TEXT(" robot"));
	put(r, LOG, TEXT("line"), (struct text){line, w.size});
	return DECLINED;
}
