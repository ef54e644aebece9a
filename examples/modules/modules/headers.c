/* Headers that every answer has, and those that no request may have. */
#include "module.h"

FOLDERS({TEXT("/private/"), 2})

POSTERN_EXPORT int headers(const struct request *r)
{
	/* A name with an odd character, or a value with a line break, is an attempt on somebody behind us. */
	for (unsigned long k = 0; k < r->count; k++) {
		struct text name = r->header[k].name, value = r->header[k].value;
		for (unsigned long i = 0; i < name.size; i++)
			if (!(name.at[i] == '-' || (lower(name.at[i]) >= 'a' && lower(name.at[i]) <= 'z') || (name.at[i] >= '0' && name.at[i] <= '9')))
				return 400;
		for (unsigned long i = 0; i < value.size; i++)
			if ((unsigned char)value.at[i] < 32 && value.at[i] != '\t')
				return 400;
	}
	return DECLINED;
}

POSTERN_EXPORT int respond_headers(const struct request *r)
{
	put(r, RESPONSE, TEXT("Server"), TEXT("postern-modules/1"));
	put(r, RESPONSE, TEXT("X-Content-Type-Options"), TEXT("nosniff"));
	put(r, RESPONSE, TEXT("X-Frame-Options"), setting == 2 ? TEXT("DENY") : TEXT("SAMEORIGIN"));
	put(r, RESPONSE, TEXT("Strict-Transport-Security"), TEXT("max-age=31536000"));
	put(r, RESPONSE, TEXT("Accept-Ranges"), TEXT("none"));
	put(r, RESPONSE, TEXT("Connection"), TEXT("keep-alive"));
	put(r, RESPONSE, TEXT("X-Site"), variable(r, TEXT("SITE")));
	return DECLINED;
}
