/* What a file is, by the end of its name. */
#include "module.h"

FOLDERS({TEXT("/images/"), 2})

static const struct {
	struct text end, type;
} types[] = {
	{TEXT(".html"), TEXT("text/html")},        {TEXT(".htm"), TEXT("text/html")},         {TEXT(".txt"), TEXT("text/plain")},
	{TEXT(".css"), TEXT("text/css")},          {TEXT(".js"), TEXT("text/javascript")},    {TEXT(".xml"), TEXT("application/xml")},
	{TEXT(".json"), TEXT("application/json")}, {TEXT(".png"), TEXT("image/png")},         {TEXT(".jpg"), TEXT("image/jpeg")},
	{TEXT(".gif"), TEXT("image/gif")},         {TEXT(".svg"), TEXT("image/svg+xml")},     {TEXT(".pdf"), TEXT("application/pdf")},
	{TEXT(".gz"), TEXT("application/gzip")},   {TEXT(".zip"), TEXT("application/zip")},   {TEXT(".mp3"), TEXT("audio/mpeg")},
	{TEXT(".cgi"), TEXT("server/cgi")},        {TEXT(".asis"), TEXT("server/asis")},      {TEXT(".map"), TEXT("server/imagemap")},
};

POSTERN_EXPORT int type(const struct request *r)
{
	for (unsigned long k = 0; k < sizeof types / sizeof *types; k++)
		if (ends(r->file, types[k].end)) {
			put(r, TYPE, TEXT(""), types[k].type);
			return DECLINED;
		}
	return DECLINED;
}

POSTERN_EXPORT int respond_headers(const struct request *r)
{
	if (r->type.size)
		put(r, RESPONSE, TEXT("Content-Type"), r->type);
	return DECLINED;
}

POSTERN_EXPORT int log_request(const struct request *r)
{
	put(r, LOG, TEXT("type"), r->type);
	return DECLINED;
}
