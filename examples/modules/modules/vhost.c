/* Which of several sites the request is for, by its Host header. */
#include "module.h"

FOLDERS({TEXT("/docs/"), 2})

static const struct {
	struct text name, site;
} sites[] = {
	{TEXT("www.example.org"), TEXT("main")},
	{TEXT("example.org"), TEXT("main")},
	{TEXT("docs.example.org"), TEXT("docs")},
	{TEXT("static.example.org"), TEXT("static")},
};

POSTERN_EXPORT int post_read(const struct request *r)
{
	struct text host = header_of(r, TEXT("Host"));
	for (unsigned long k = 0; k < host.size; k++)
		if (host.at[k] == ':')
			host.size = k;
	for (unsigned long k = 0; k < sizeof sites / sizeof *sites; k++)
		if (same(host, sites[k].name)) {
			put(r, VARIABLE, TEXT("SITE"), sites[k].site);
			return DECLINED;
		}
	return 400;
}

POSTERN_EXPORT int translate(const struct request *r)
{
	/* The site of static files has no other folders. */
	if (same(variable(r, TEXT("SITE")), TEXT("static")) && !begins(r->uri, TEXT("/images/")))
		return 404;
	return DECLINED;
}

POSTERN_EXPORT int log_request(const struct request *r)
{
	put(r, LOG, TEXT("site"), variable(r, TEXT("SITE")));
	return DECLINED;
}
