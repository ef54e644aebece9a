/* Hands the settings of a folder to whatever answers. */
#include "module.h"

FOLDERS({TEXT("/docs/"), 2}, {TEXT("/cgi-bin/"), 3})

POSTERN_EXPORT int fixup(const struct request *r)
{
	put(r, VARIABLE, TEXT("SERVER_ADMIN"), TEXT("webmaster@example.org"));
	put(r, VARIABLE, TEXT("SERVER_SOFTWARE"), TEXT("postern-modules/1"));
	put(r, VARIABLE, TEXT("GATEWAY_INTERFACE"), TEXT("CGI/1.1"));
	put(r, VARIABLE, TEXT("DOCUMENT_ROOT"), TEXT("/srv/www"));
	if (setting == 2)
		put(r, VARIABLE, TEXT("MANUAL"), TEXT("1"));
	return DECLINED;
}

POSTERN_EXPORT int log_request(const struct request *r)
{
	put(r, LOG, TEXT("gzip"), variable(r, TEXT("gzip")));
	return DECLINED;
}
