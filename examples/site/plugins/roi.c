/* Region of interest: a part of the picture.
 * parameters: roi(x,y,width,height), such as roi(180,120,360,240); what lies outside the picture is left out
 */
#include "picture.h"

int roi(struct picture *p)
{
	unsigned x, y, width, height;
	unsigned long row = (unsigned long)p->width * p->channels, part;
	const unsigned char *from;
	unsigned char *to = p->out;

	if (p->count != 4 || p->argument[0] < 0 || p->argument[1] < 0 || p->argument[2] < 1 || p->argument[3] < 1)
		return PICTURE_ARGUMENTS;
	x = p->argument[0];
	y = p->argument[1];
	if (x >= p->width || y >= p->height)
		return PICTURE_ARGUMENTS;
	width = p->argument[2];
	height = p->argument[3];
	if (width > p->width - x)
		width = p->width - x;
	if (height > p->height - y)
		height = p->height - y;
	from = p->pixels + y * row + (unsigned long)x * p->channels;
	part = (unsigned long)width * p->channels;
	for (unsigned line = 0; line < height; line++) {
		for (unsigned long i = 0; i < part; i++)
			to[i] = from[i];
		from += row;
		to += part;
	}
	p->width = width;
	p->height = height;
	return PICTURE_DONE;
}
