/* Names and passwords. What the server keeps of a password is its salt and a hash that takes a while. */
#include "module.h"
#include "sha256.h"

FOLDERS({TEXT("/private/"), 2}, {TEXT("/docs/"), 2})

enum { ROUNDS = 44 };

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static int verdict;

POSTERN_EXPORT int check_user(const struct request *r)
{
	verdict = 0;
	struct text given = header_of(r, TEXT("Authorization"));
	if (!begins(given, TEXT("Basic ")))
		return DECLINED;
	char plain[128];
	unsigned long size = 0, held = 0, bits = 0;
	for (unsigned long k = 6; k < given.size && given.at[k] != '='; k++) {
		int value = value_of(given.at[k]);
		if (value < 0 || size == sizeof plain)
			return 401;
		held = held << 6 | (unsigned)value;
		bits += 6;
		if (bits >= 8)
			plain[size++] = (char)(held >> (bits -= 8));
	}
	unsigned long colon = 0;
	while (colon < size && plain[colon] != ':')
		colon++;
	if (colon == size)
		return 401;
	/* The salt, 16 bytes, and the hash, 64 digits. */
	struct writer w = {r->outbox, 0};
	add(&w, (struct text){plain, colon});
	if (server_secret((unsigned)colon) != 80)
		return 401;
	char kept[80];
	for (int k = 0; k < 80; k++)
		kept[k] = r->outbox[k];
	unsigned char digest[32] = {0};
	for (int round = 0; round < ROUNDS; round++) {
		struct sha256 s;
		sha256_begin(&s);
		sha256_add(&s, digest, round ? 32 : 0);
		sha256_add(&s, kept, 16);
		sha256_add(&s, plain + colon + 1, size - colon - 1);
		sha256_end(&s, digest);
	}
	int wrong = 0;
	for (int k = 0; k < 32; k++)
		wrong |= kept[16 + 2 * k] ^ "0123456789abcdef"[digest[k] >> 4], wrong |= kept[17 + 2 * k] ^ "0123456789abcdef"[digest[k] & 15];
	if (wrong)
		return 401;
	verdict = 1;
	put(r, USER, TEXT(""), (struct text){plain, colon});
	return DONE;
}

POSTERN_EXPORT int authorize(const struct request *r)
{
	return setting == 2 && !r->user.size ? 401 : DECLINED;
}

POSTERN_EXPORT int log_request(const struct request *r)
{
	put(r, LOG, TEXT("user"), verdict ? r->user : TEXT("-"));
	return DECLINED;
}
