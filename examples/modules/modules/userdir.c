/* Pages of users: /~name/page lies in that user's own folder. */
#include "module.h"

FOLDERS({TEXT("/~"), 2})

POSTERN_EXPORT int translate(const struct request *r)
{
	if (!begins(r->uri, TEXT("/~")))
		return DECLINED;
	struct writer w = {r->outbox, 0};
	unsigned long end = 2;
	while (end < r->uri.size && r->uri.at[end] != '/')
		end++;
	struct text user = {r->uri.at + 2, end - 2};
	if (!user.size || same(user, TEXT("root")) || find(user, TEXT("..")) >= 0)
		return 403;
	add(&w, TEXT("/home/"));
	add(&w, user);
	add(&w, TEXT("/public_html"));
	add(&w, (struct text){r->uri.at + end, r->uri.size - end});
	server_put(FILE_NAME, 0, (unsigned)w.size);
	return DONE;
}
