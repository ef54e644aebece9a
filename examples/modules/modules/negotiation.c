/* Which of a page's languages the reader likes best: the header lists them with weights. */
#include "module.h"

FOLDERS({TEXT("/docs/"), 2})

static const struct text languages[] = {TEXT("en"), TEXT("de"), TEXT("fr"), TEXT("ja"), TEXT("es")};

static struct text chosen;

POSTERN_EXPORT int type(const struct request *r)
{
	struct text wanted = header_of(r, TEXT("Accept-Language"));
	unsigned long best = 0, k = 0;
	chosen = languages[0];
	while (k < wanted.size) {
		unsigned long start = k;
		while (k < wanted.size && wanted.at[k] != ',' && wanted.at[k] != ';')
			k++;
		struct text one = {wanted.at + start, k - start};
		while (one.size && *one.at == ' ')
			one.at++, one.size--;
		unsigned long weight = 1000;
		if (k < wanted.size && wanted.at[k] == ';') {
			for (weight = 0; k < wanted.size && wanted.at[k] != ','; k++)
				if (wanted.at[k] >= '0' && wanted.at[k] <= '9')
					weight = weight * 10 + (unsigned)(wanted.at[k] - '0');
			while (weight && weight < 100)
				weight *= 10;
		}
		for (unsigned long l = 0; l < sizeof languages / sizeof *languages; l++)
			if (begins(one, languages[l]) && weight > best)
				best = weight, chosen = languages[l];
		k++;
	}
	return DECLINED;
}

POSTERN_EXPORT int respond_headers(const struct request *r)
{
	put(r, RESPONSE, TEXT("Content-Language"), chosen);
	/* Old programs take an answer that varies for one that must not be kept. */
	put(r, RESPONSE, TEXT("Vary"), variable(r, TEXT("modern")).size ? TEXT("Accept-Language") : TEXT("*"));
	return DECLINED;
}

POSTERN_EXPORT int log_request(const struct request *r)
{
	put(r, LOG, TEXT("language"), chosen);
	return DECLINED;
}
