/* How long an answer may be kept, by what it is. */
#include "module.h"

FOLDERS({TEXT("/images/"), 2}, {TEXT("/private/"), 3})

enum { DATE = 29 };

static void two(char *to, unsigned long number)
{
	to[0] = (char)('0' + number / 10);
	to[1] = (char)('0' + number % 10);
}

/* A date as RFC 1123 has it. In this calendar years begin in March and eras have 400 years, so that leap days come last. */
static void date(char *to, unsigned seconds)
{
	static const char days[] = "ThuFriSatSunMonTueWed", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	unsigned day = seconds / 86400, z = day + 719468, era = z / 146097, of_era = z % 146097;
	unsigned year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	unsigned of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100), shifted = (5 * of_year + 2) / 153;
	unsigned month = shifted < 10 ? shifted + 2 : shifted - 10, year = era * 400 + year_of_era + (month < 2);
	__builtin_memcpy(to, "Thu, 01 Jan 1970 00:00:00 GMT", DATE);
	__builtin_memcpy(to, days + day % 7 * 3, 3);
	two(to + 5, of_year - (153 * shifted + 2) / 5 + 1);
	__builtin_memcpy(to + 8, months + month * 3, 3);
	two(to + 12, year / 100);
	two(to + 14, year % 100);
	two(to + 17, seconds % 86400 / 3600);
	two(to + 20, seconds % 3600 / 60);
	two(to + 23, seconds % 60);
}

POSTERN_EXPORT int respond_headers(const struct request *r)
{
	unsigned long age = setting == 3 ? 0 : begins(r->type, TEXT("image/")) ? 2592000 : 3600, now = server_seconds();
	char text[DATE];
	struct writer w = {text, 0};
	date(text, (unsigned)now);
	put(r, RESPONSE, TEXT("Date"), (struct text){text, DATE});
	date(text, (unsigned)(now + age));
	put(r, RESPONSE, TEXT("Expires"), (struct text){text, DATE});
	add(&w, TEXT("max-age="));
	add_number(&w, age);
	put(r, RESPONSE, TEXT("Cache-Control"), (struct text){text, w.size});
	return DECLINED;
}
