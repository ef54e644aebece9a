/* picture.h: plugins that change pictures on their way to a client. One source is E-code, and C for
 * gcc and `postern cc`.
 *
 *     #include "picture.h"
 *
 *     int invert(struct picture *p)
 *     {
 *             unsigned long n = (unsigned long)p->width * p->height * p->channels;
 *
 *             for (unsigned long i = 0; i < n; i++)
 *                     p->out[i] = 255 - p->pixels[i];
 *             return PICTURE_DONE;
 *     }
 *
 * The plugin `invert` has a function of its own name (a `-` in the plugin's name is a `_` in the
 * function's). It finds the picture at `pixels`, writes the result to `out`, and leaves the
 * result's width, height and channels in the structure; or it changes the picture where it is and
 * says so. The result becomes the next plugin's picture without being copied. What a function
 leaves is checked: a result that does not fit `room` is no answer. */
#ifndef PICTURE_H
#define PICTURE_H

/* What a function returns. Anything else says that it cannot do what it was asked for; the client
 * is told the number. */
enum {
	PICTURE_DONE = 0,     /* the result is at `out` */
	PICTURE_IN_PLACE = 1, /* the result is at `pixels` */
	PICTURE_ARGUMENTS = 2 /* the arguments make no sense for this picture */
};

/* What the result is. */
enum {
	PICTURE_PIXELS = 0,      /* a picture */
	PICTURE_PPM = 1,         /* `size` bytes: a PPM or PGM file; no plugin comes after it */
	PICTURE_PPM_DEFLATE = 2, /* the same, deflated (a zlib stream, which is what HTTP calls `deflate`) */
	PICTURE_BYTES = 3        /* `size` bytes of the plugin's own */
};

struct picture {
	unsigned width, height; /* at least 1 */
	unsigned channels;      /* 1 gray, 2 gray and alpha, 3 RGB, 4 RGB and alpha: a byte each, rows without gaps */
	unsigned answer;        /* what the result is */
	unsigned char *pixels;
	unsigned char *out;
	unsigned long room; /* bytes at `out`, and at `pixels` */
	unsigned long size; /* bytes of the result, if it is no picture */
	int count;          /* arguments: 2 of scale(3,1) */
	int argument[8];
};

#endif
