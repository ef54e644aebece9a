/* What a file is, by how it begins, where its name does not tell. */
#include "module.h"

FOLDERS({TEXT("/files/"), 2})

static const struct {
	struct text begin, type;
} magic[] = {
	{TEXT("\x89PNG"), TEXT("image/png")}, {TEXT("GIF8"), TEXT("image/gif")},       {TEXT("\xff\xd8\xff"), TEXT("image/jpeg")},
	{TEXT("%PDF-"), TEXT("application/pdf")}, {TEXT("PK\x03\x04"), TEXT("application/zip")}, {TEXT("\x1f\x8b"), TEXT("application/gzip")},
	{TEXT("<!DOCTYPE html"), TEXT("text/html")}, {TEXT("<html"), TEXT("text/html")}, {TEXT("<?xml"), TEXT("application/xml")},
};

static int text_only;

POSTERN_EXPORT int type(const struct request *r)
{
	unsigned long odd = 0, high = 0;
	for (unsigned long k = 0; k < r->body.size; k++) {
		unsigned char c = (unsigned char)r->body.at[k];
		odd += c < 32 && c != '\n' && c != '\r' && c != '\t';
		high += c >= 128;
	}
	text_only = !odd;
	if (r->type.size)
		return DECLINED;
	for (unsigned long k = 0; k < sizeof magic / sizeof *magic; k++)
		if (begins(r->body, magic[k].begin)) {
			put(r, TYPE, TEXT(""), magic[k].type);
			return DECLINED;
		}
	put(r, TYPE, TEXT(""), text_only ? TEXT("text/plain") : TEXT("application/octet-stream"));
	return DECLINED;
}

POSTERN_EXPORT int fixup(const struct request *r)
{
	/* What claims to be text and is not must not be looked at as text. */
	if (!text_only && begins(r->type, TEXT("text/")))
		put(r, TYPE, TEXT(""), TEXT("application/octet-stream"));
	return DECLINED;
}
