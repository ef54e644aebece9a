/* Sharper edges: five times the pixel, less its four neighbours. The rim and alpha stay as they are.
 * parameters: none
 */
#include "picture.h"

int sharpen(struct picture *p)
{
	unsigned channels = p->channels;
	unsigned colours = channels - (channels == 2 || channels == 4);
	unsigned long row = (unsigned long)p->width * channels, n = row * p->height;
	const unsigned char *from = p->pixels;
	unsigned char *to = p->out;

	if (p->width < 3 || p->height < 3)
		return PICTURE_IN_PLACE;
	for (unsigned long i = 0; i < row; i++) {
		to[i] = from[i];
		to[n - 1 - i] = from[n - 1 - i];
	}
	for (unsigned y = 1; y + 1 < p->height; y++) {
		from += row;
		to += row;
		for (unsigned c = 0; c < channels; c++) {
			to[c] = from[c];
			to[row - channels + c] = from[row - channels + c];
		}
		for (unsigned long i = channels; i < row - channels; i += channels) {
			const unsigned char *at = from + i, *above = at - row, *below = at + row;
			unsigned char *result = to + i;
			unsigned c = 0;

			for (; c < colours; c++) {
				int sharp = 5 * at[c] - (at - channels)[c] - at[c + channels] - above[c] - below[c];

				result[c] = sharp < 0 ? 0 : sharp > 255 ? 255 : sharp;
			}
			if (c < channels)
				result[c] = at[c];
		}
	}
	return PICTURE_DONE;
}
