// Sources to begin with: filters, and attacks. Each is a plugin whose function has the plugin's
// name.

export const FILTERS = [
  {
    title: "Gray",
    source: `#include "picture.h"

/* As bright as the eye sees each colour. */
int gray(struct picture *p)
{
	unsigned long n = (unsigned long)p->width * p->height;
	const unsigned char *from = p->pixels;

	for (unsigned long i = 0; i < n; i++, from += p->channels)
		p->out[i] = (77 * from[0] + 150 * from[1] + 29 * from[2]) >> 8;
	p->channels = 1;
	return PICTURE_DONE;
}
`,
  },
  {
    title: "Edges",
    source: `#include "picture.h"

static int brightness(const struct picture *p, unsigned x, unsigned y)
{
	const unsigned char *at = p->pixels + ((unsigned long)y * p->width + x) * p->channels;

	return at[0] + 2 * at[1] + at[2];
}

/* Dark where brightness changes, as drawn with a pencil. */
int edges(struct picture *p)
{
	unsigned char *to = p->out;

	for (unsigned y = 0; y < p->height; y++) {
		for (unsigned x = 0; x < p->width; x++) {
			unsigned right = x + 1 < p->width ? x + 1 : x;
			unsigned below = y + 1 < p->height ? y + 1 : y;
			int here = brightness(p, x, y);
			int across = brightness(p, right, y) - here;
			int down = brightness(p, x, below) - here;
			int change = (across < 0 ? -across : across) + (down < 0 ? -down : down);

			*to++ = change > 127 ? 0 : 255 - 2 * change;
		}
	}
	p->channels = 1;
	return PICTURE_DONE;
}
`,
  },
  {
    title: "Mosaic",
    source: `#include "picture.h"

enum { TILE = 12 };

/* Each tile gets the mean of its colours. */
int mosaic(struct picture *p)
{
	for (unsigned top = 0; top < p->height; top += TILE) {
		for (unsigned left = 0; left < p->width; left += TILE) {
			unsigned bottom = top + TILE < p->height ? top + TILE : p->height;
			unsigned right = left + TILE < p->width ? left + TILE : p->width;

			for (unsigned c = 0; c < p->channels; c++) {
				unsigned sum = 0;

				for (unsigned y = top; y < bottom; y++)
					for (unsigned x = left; x < right; x++)
						sum += p->pixels[((unsigned long)y * p->width + x) * p->channels + c];
				sum /= (bottom - top) * (right - left);
				for (unsigned y = top; y < bottom; y++)
					for (unsigned x = left; x < right; x++)
						p->out[((unsigned long)y * p->width + x) * p->channels + c] = sum;
			}
		}
	}
	return PICTURE_DONE;
}
`,
  },
  {
    title: "Half size",
    source: `#include "picture.h"

/* The mean of four pixels becomes one. */
int half(struct picture *p)
{
	unsigned width = p->width / 2, height = p->height / 2;
	unsigned long row = (unsigned long)p->width * p->channels;
	unsigned char *to = p->out;

	for (unsigned y = 0; y < height; y++) {
		for (unsigned x = 0; x < width; x++) {
			const unsigned char *at = p->pixels + 2 * y * row + 2 * x * p->channels;

			for (unsigned c = 0; c < p->channels; c++, at++)
				*to++ = (at[0] + at[p->channels] + at[row] + at[row + p->channels]) / 4;
		}
	}
	p->width = width;
	p->height = height;
	return PICTURE_DONE;
}
`,
  },
  {
    title: "Poster",
    source: `#include "picture.h"

/* Four levels of each colour, instead of 256. */
int poster(struct picture *p)
{
	unsigned long n = (unsigned long)p->width * p->height * p->channels;

	for (unsigned long i = 0; i < n; i++)
		p->out[i] = (p->pixels[i] >> 6) * 85;
	return PICTURE_DONE;
}
`,
  },
];

export const ATTACKS = [
  {
    title: "Endless loop",
    why: "a thread that never comes back",
    source: `#include "picture.h"

/* Never comes back. The call has a time limit, and the thread is taken back. */
int loop(struct picture *p)
{
	unsigned turns = 0;

	while (1) turns += p->width;
	return turns;
}
`,
  },
  {
    title: "Wild write",
    why: "a pointer into the server's memory",
    source: `#include "picture.h"

/* An address at which Linux puts a process's stack. Here its low 32 bits are an
   offset into the plugin's own window, and at this one there is nothing. */
int wild(struct picture *p)
{
	char *server = (char *)0x7ffd80001000;

	*server = 'X';
	return PICTURE_DONE;
}
`,
  },
  {
    title: "Wild jump",
    why: "a function pointer to anywhere",
    source: `#include "picture.h"

typedef int (*function)(void);

/* Goes on in the middle of nowhere. Calls by pointer are checked to lead to the
   beginning of a function of the window. */
int jump(struct picture *p)
{
	function anywhere = (function)0x41414141;

	return anywhere();
}
`,
  },
  {
    title: "Recursion",
    why: "a stack without end",
    source: `#include "picture.h"

/* Each call takes more of the stack, and none returns. Behind a domain's stack
   there is nothing that could be overwritten. */
static int deeper(int depth)
{
	int frame[256];

	frame[depth & 255] = depth;
	return deeper(depth + 1) + frame[depth & 255];
}

int recurse(struct picture *p)
{
	return deeper(0);
}
`,
  },
];

/** The line on which a function begins, for faults that come before its first statement. */
export function lineOf(source, name) {
  const index = source.split("\n").findIndex((line) => new RegExp(`^[\\w*\\s]*\\b${name}\\s*\\([^;]*$`).test(line));
  return index < 0 ? undefined : index + 1;
}

/** Arguments as the source itself shows them in its first comment, in `parameters: … NAME(1,2)`; `null` if it takes none. */
export function argumentsOf(source) {
  if (!/\bargument\b/.test(source)) return null;
  return source.match(/\bparameters:.*?\w\((-?\d[-\d, ]*)\)/)?.[1] ?? "";
}

/** The name of the plugin that a source is: its last function of a picture that is not static. */
export function nameOf(source) {
  const code = source.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "");
  const functions = [...code.matchAll(/(static\s+)?\bint\s+([A-Za-z_]\w*)\s*\(\s*struct\s+picture\s*\*/g)];
  const last = functions.filter((found) => !found[1]).pop();
  return last && last[2];
}
