/* The user `anonymous` may see what is public, if an address of electronic mail stands for the password. */
#include "module.h"

FOLDERS({TEXT("/private/"), 2}, {TEXT("/docs/"), 2})

POSTERN_EXPORT int check_user(const struct request *r)
{
	if (setting == 2 || r->user.size)
		return DECLINED;
	struct text from = header_of(r, TEXT("From"));
	long at = find(from, TEXT("@"));
	if (at > 0 && find(from, TEXT(".")) > at)
		put(r, USER, TEXT(""), TEXT("anonymous"));
	return DECLINED;
}
