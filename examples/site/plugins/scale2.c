/* Half the width and half the height: the mean of each two by two pixels. An odd last row or column is left out.
 * parameters: none
 */
#include "picture.h"

int scale2(struct picture *p)
{
	unsigned width = p->width / 2, height = p->height / 2, channels = p->channels;
	unsigned long row = (unsigned long)p->width * channels;
	unsigned char *to = p->out;

	if (width == 0 || height == 0)
		return PICTURE_ARGUMENTS;
	for (unsigned y = 0; y < height; y++) {
		const unsigned char *upper = p->pixels + 2 * y * row;
		const unsigned char *lower = upper + row;

		for (unsigned x = 0; x < width; x++) {
			for (unsigned c = 0; c < channels; c++)
				to[c] = (upper[c] + upper[c + channels] + lower[c] + lower[c + channels] + 2) >> 2;
			to += channels;
			upper += 2 * channels;
			lower += 2 * channels;
		}
	}
	p->width = width;
	p->height = height;
	return PICTURE_DONE;
}
