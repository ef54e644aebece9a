/* A cookie by which visits can be counted. Its second half is a signature, so that nobody makes up his own. */
#include "module.h"
#include "sha256.h"

FOLDERS({TEXT("/images/"), 2})

static const unsigned char key[64] = "a key that the administrator has chosen with more care than this";
static char cookie[32];
static int known, robot;

static void sign(char *to, const char *name)
{
	/* HMAC-SHA-256 (RFC 2104), 64 bits of it. */
	struct sha256 s;
	unsigned char pad[64], digest[32];
	sha256_begin(&s);
	for (int k = 0; k < 64; k++)
		pad[k] = key[k] ^ 0x36;
	sha256_add(&s, pad, 64);
	sha256_add(&s, name, 16);
	sha256_end(&s, digest);
	sha256_begin(&s);
	for (int k = 0; k < 64; k++)
		pad[k] = key[k] ^ 0x5c;
	sha256_add(&s, pad, 64);
	sha256_add(&s, digest, 32);
	sha256_end(&s, digest);
	for (int k = 0; k < 8; k++) {
		to[2 * k] = "0123456789abcdef"[digest[k] >> 4];
		to[2 * k + 1] = "0123456789abcdef"[digest[k] & 15];
	}
}

POSTERN_EXPORT int headers(const struct request *r)
{
	struct text given = header_of(r, TEXT("Cookie"));
	long at = find(given, TEXT("visit="));
	known = 0;
	robot = variable(r, TEXT("robot")).size != 0;
	if (at >= 0 && given.size >= (unsigned long)at + 38) {
		char right[16];
		for (int k = 0; k < 32; k++)
			cookie[k] = given.at[at + 6 + k];
		sign(right, cookie);
		known = same((struct text){right, 16}, (struct text){cookie + 16, 16});
	}
	if (!known) {
		struct writer w = {cookie, 0};
		add_hex(&w, hash(hash(SEED + r->number, r->address), header_of(r, TEXT("User-Agent"))));
		sign(cookie + 16, cookie);
	}
	return DECLINED;
}

POSTERN_EXPORT int respond_headers(const struct request *r)
{
	if (!known && !robot) {
		char text[64];
		struct writer w = {text, 0};
		add(&w, TEXT("visit="));
		add(&w, (struct text){cookie, 32});
		add(&w, TEXT("; Path=/; HttpOnly"));
		put(r, RESPONSE, TEXT("Set-Cookie"), (struct text){text, w.size});
	}
	return DECLINED;
}

POSTERN_EXPORT int log_request(const struct request *r)
{
	put(r, LOG, TEXT("visit"), (struct text){cookie, 16});
	return DECLINED;
}
