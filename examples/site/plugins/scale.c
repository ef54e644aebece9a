/* A smaller picture: the mean of each n by n pixels. What is left over at the right and below is left out.
 * parameters: scale(n), n from 1 to 64, such as scale(3)
 */
#include "picture.h"

int scale(struct picture *p)
{
	unsigned n = p->count == 1 ? p->argument[0] : 0;
	unsigned channels = p->channels;
	unsigned long row = (unsigned long)p->width * channels;
	unsigned char *to = p->out;
	unsigned width, height;

	if (n < 1 || n > 64)
		return PICTURE_ARGUMENTS;
	width = p->width / n;
	height = p->height / n;
	if (width == 0 || height == 0)
		return PICTURE_ARGUMENTS;
	for (unsigned y = 0; y < height; y++) {
		for (unsigned x = 0; x < width; x++) {
			const unsigned char *corner = p->pixels + y * n * row + (unsigned long)x * n * channels;

			for (unsigned c = 0; c < channels; c++) {
				unsigned sum = n * n / 2;

				for (unsigned i = 0; i < n; i++)
					for (unsigned j = 0; j < n; j++)
						sum += corner[i * row + j * channels + c];
				*to++ = sum / (n * n);
			}
		}
	}
	p->width = width;
	p->height = height;
	return PICTURE_DONE;
}
