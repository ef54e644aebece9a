/* Fewer levels of each colour. Alpha stays.
 * parameters: quantise(levels), from 2 to 256, such as quantise(4)
 */
#include "picture.h"

/* A union may be looked at through any of its members. */
union word {
	unsigned all;
	unsigned char bytes[4];
};

int quantise(struct picture *p)
{
	unsigned char table[256];
	unsigned levels = p->count == 1 ? p->argument[0] : 0;
	unsigned long n = (unsigned long)p->width * p->height;
	unsigned char *at = p->pixels;
	unsigned channels = p->channels;

	if (levels < 2 || levels > 256)
		return PICTURE_ARGUMENTS;
	for (unsigned i = 0; i < 256; i++)
		table[i] = i * levels / 256 * 255 / (levels - 1);
	if (channels == 1 || channels == 3) {
		n *= channels;
		/* Four at once: memory is asked half as often. */
		for (; n >= 4; n -= 4, at += 4) {
			union word *four = (union word *)at;
			unsigned v = four->all;

			four->all = table[v & 255] | table[v >> 8 & 255] << 8 | table[v >> 16 & 255] << 16 |
				(unsigned)table[v >> 24] << 24;
		}
		for (; n > 0; n--, at++)
			*at = table[*at];
		return PICTURE_IN_PLACE;
	}
	for (; n > 0; n--, at += channels)
		for (unsigned c = 0; c + 1 < channels; c++)
			at[c] = table[at[c]];
	return PICTURE_IN_PLACE;
}
