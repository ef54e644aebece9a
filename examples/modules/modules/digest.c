/* A digest of what the request asks for, by which a reader can tell that nothing on the way has changed the answer's head. */
#include "module.h"
#include "sha256.h"

FOLDERS({TEXT("/files/"), 2})

static unsigned char sum[32];

POSTERN_EXPORT int fixup(const struct request *r)
{
	struct sha256 s;
	sha256_begin(&s);
	sha256_add(&s, r->body.at, r->body.size);
	sha256_end(&s, sum);
	return DECLINED;
}

POSTERN_EXPORT int respond_headers(const struct request *r)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char text[64];
	struct writer w = {text, 0};
	add(&w, TEXT("sha-256="));
	for (int k = 0; k < 32; k += 3) {
		unsigned bits = (unsigned)sum[k] << 16 | (unsigned)(k + 1 < 32 ? sum[k + 1] : 0) << 8 | (k + 2 < 32 ? sum[k + 2] : 0);
		for (int i = 0; i < 4; i++)
			add(&w, k * 4 / 3 + i < 43 ? (struct text){letters + (bits >> (18 - 6 * i) & 63), 1} : TEXT("="));
	}
	put(r, RESPONSE, TEXT("Digest-Of-Head"), (struct text){text, w.size});
	return DECLINED;
}
