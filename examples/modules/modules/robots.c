/* Robots stay out of what is not meant for them. */
#include "module.h"

FOLDERS({TEXT("/private/"), 2}, {TEXT("/search/"), 2})

static const struct text robots[] = {
	TEXT("Googlebot"), TEXT("bingbot"),   TEXT("Slurp"),       TEXT("DuckDuckBot"), TEXT("Baiduspider"), TEXT("YandexBot"), TEXT("Sogou"),
	TEXT("Exabot"),    TEXT("facebot"),   TEXT("ia_archiver"), TEXT("AhrefsBot"),   TEXT("SemrushBot"),  TEXT("MJ12bot"),   TEXT("DotBot"),
	TEXT("PetalBot"),  TEXT("archive.org_bot"),
};

static int robot;

POSTERN_EXPORT int headers(const struct request *r)
{
	struct text agent = header_of(r, TEXT("User-Agent"));
	robot = 0;
	for (unsigned long k = 0; k < sizeof robots / sizeof *robots && !robot; k++)
		robot = find(agent, robots[k]) >= 0;
	return DECLINED;
}

POSTERN_EXPORT int check_access(const struct request *r)
{
	robot |= variable(r, TEXT("robot")).size != 0;
	return robot && setting == 2 && !same(r->uri, TEXT("/robots.txt")) ? 403 : DECLINED;
}
