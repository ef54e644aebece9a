/* Sets variables by what the headers say: programs that are known for something. */
#include "module.h"

FOLDERS({TEXT("/images/"), 2})

static const struct {
	struct text part, variable;
} agents[] = {
	{TEXT("MSIE 4"), TEXT("downgrade")},  {TEXT("Mozilla/2"), TEXT("nokeepalive")}, {TEXT("RealPlayer"), TEXT("downgrade")},
	{TEXT("Java/1.0"), TEXT("downgrade")}, {TEXT("spider"), TEXT("robot")},         {TEXT("crawler"), TEXT("robot")},
	{TEXT("bot/"), TEXT("robot")},        {TEXT("wget"), TEXT("tool")},             {TEXT("curl"), TEXT("tool")},
	{TEXT("Firefox"), TEXT("modern")},    {TEXT("Chrome"), TEXT("modern")},         {TEXT("Safari"), TEXT("modern")},
};

POSTERN_EXPORT int post_read(const struct request *r)
{
	struct text agent = header_of(r, TEXT("User-Agent"));
	for (unsigned long k = 0; k < sizeof agents / sizeof *agents; k++)
		if (find(agent, agents[k].part) >= 0) {
			put(r, VARIABLE, agents[k].variable, TEXT("1"));
			break;
		}
	return DECLINED;
}

POSTERN_EXPORT int headers(const struct request *r)
{
	if (begins(header_of(r, TEXT("Accept-Encoding")), TEXT("gzip")))
		put(r, VARIABLE, TEXT("gzip"), TEXT("1"));
	return DECLINED;
}
