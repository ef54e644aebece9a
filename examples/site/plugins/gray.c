/* Colour to grey, as ITU-R BT.601 weighs the colours. Alpha goes.
 * parameters: none
 */
#include "picture.h"

int gray(struct picture *p)
{
	const unsigned char *from = p->pixels;
	unsigned char *to = p->out;
	unsigned long left = (unsigned long)p->width * p->height;
	unsigned step = p->channels;

	if (step == 1)
		return PICTURE_IN_PLACE;
	p->channels = 1;
	if (step == 2) {
		for (; left > 0; left--, from += 2)
			*to++ = from[0];
		return PICTURE_DONE;
	}
	for (; left >= 4; left -= 4, to += 4) {
		unsigned a = 77 * from[0] + 150 * from[1] + 29 * from[2];
		unsigned b, c, d;

		from += step;
		b = 77 * from[0] + 150 * from[1] + 29 * from[2];
		from += step;
		c = 77 * from[0] + 150 * from[1] + 29 * from[2];
		from += step;
		d = 77 * from[0] + 150 * from[1] + 29 * from[2];
		from += step;
		to[0] = a >> 8;
		to[1] = b >> 8;
		to[2] = c >> 8;
		to[3] = d >> 8;
	}
	for (; left > 0; left--, from += step)
		*to++ = (77 * from[0] + 150 * from[1] + 29 * from[2]) >> 8;
	return PICTURE_DONE;
}
