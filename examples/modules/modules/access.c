/* Who may come in, by the address from which the request is: networks that are allowed or denied, the longest prefix counts. */
#include "module.h"

FOLDERS({TEXT("/private/"), 2}, {TEXT("/server-status"), 2})

static const struct {
	unsigned network, bits;
	int allow;
} networks[] = {
	{0x00000000, 0, 1},  {0x0a000000, 8, 1},   {0x0a420000, 16, 0}, {0xc0a80000, 16, 1}, {0xc0a8ff00, 24, 0}, {0xcb007100, 24, 0},
	{0xc6336400, 24, 0}, {0xc0000200, 24, 1},  {0xac100000, 12, 1}, {0xac1f0000, 16, 0}, {0xe0000000, 4, 0},  {0xf0000000, 4, 0},
	{0x7f000000, 8, 1},  {0xa9fe0000, 16, 0},  {0x64400000, 10, 1}, {0x64580000, 13, 0}, {0x01010000, 16, 1}, {0x08080000, 16, 1},
	{0x2d400000, 12, 0}, {0x5bd00000, 13, 0},  {0xb9000000, 9, 1},  {0xc2000000, 8, 1},  {0xc2420000, 16, 0}, {0xd4000000, 8, 1},
};

static int judge(struct text address, int inside)
{
	unsigned value = 0, byte = 0, dots = 0;
	for (unsigned long k = 0; k < address.size; k++)
		if (address.at[k] == '.')
			value = value << 8 | byte, byte = 0, dots++;
		else if (address.at[k] >= '0' && address.at[k] <= '9')
			byte = byte * 10 + (unsigned)(address.at[k] - '0');
		else
			return 0;
	if (dots != 3)
		return 0;
	value = value << 8 | byte;
	unsigned longest = 0;
	int allow = 0;
	for (unsigned long k = 0; k < sizeof networks / sizeof *networks; k++) {
		unsigned bits = networks[k].bits, mask = bits ? ~0u << (32 - bits) : 0;
		if ((value & mask) == networks[k].network && bits >= longest)
			longest = bits, allow = networks[k].allow;
	}
	return allow && (!inside || longest >= 8);
}

static int denied;

POSTERN_EXPORT int check_access(const struct request *r)
{
	denied = !judge(r->address, setting == 2);
	return denied ? 403 : DECLINED;
}

POSTERN_EXPORT int headers(const struct request *r)
{
	/* Behind a proxy of ours, who stands behind that one counts, too. */
	struct text behind = header_of(r, TEXT("X-Forwarded-For"));
	return behind.size && !judge(behind, setting == 2) ? 403 : DECLINED;
}

POSTERN_EXPORT int log_request(const struct request *r)
{
	put(r, LOG, TEXT("access"), denied ? TEXT("denied") : TEXT("allowed"));
	return DECLINED;
}
