/* The picture as a PPM file (PGM if it is grey; alpha goes), deflated: a zlib stream (RFC 1950 and 1951) of fixed codes, with
 * repetitions of the last 32 KiB that a table of hashes finds.
 * parameters: none; comes last
 */
#include "picture.h"

#define HASHES 4096
#define WINDOW 32768
#define LONGEST 258

struct writer {
	unsigned char *at;
	unsigned long bits;
	unsigned count;
};

static const unsigned short length_base[29] = { 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27,
	31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258 };
static const unsigned char length_extra[29] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0 };
static const unsigned short distance_base[30] = { 1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769,
	1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577 };

/* Huffman codes go from their first bit on: the bits of `code` the other way round. */
static unsigned turned(unsigned code, unsigned bits)
{
	unsigned r = 0;

	for (; bits > 0; bits--, code >>= 1)
		r = r << 1 | (code & 1);
	return r;
}

static void put(struct writer *w, unsigned value, unsigned bits)
{
	w->bits |= (unsigned long)value << w->count;
	w->count += bits;
	while (w->count >= 8) {
		*w->at++ = w->bits;
		w->bits >>= 8;
		w->count -= 8;
	}
}

static void symbol(struct writer *w, unsigned s)
{
	if (s < 144)
		put(w, turned(0x30 + s, 8), 8);
	else if (s < 256)
		put(w, turned(0x190 + s - 144, 9), 9);
	else if (s < 280)
		put(w, turned(s - 256, 7), 7);
	else
		put(w, turned(0xc0 + s - 280, 8), 8);
}

static void repeat(struct writer *w, unsigned length, unsigned distance)
{
	unsigned l = 28, d = 29;

	while (length_base[l] > length)
		l--;
	symbol(w, 257 + l);
	put(w, length - length_base[l], length_extra[l]);
	while (distance_base[d] > distance)
		d--;
	put(w, turned(d, 5), 5);
	put(w, distance - distance_base[d], d < 4 ? 0 : d / 2 - 1);
}

static unsigned char *number(unsigned char *at, unsigned n)
{
	unsigned char digits[10];
	unsigned count = 0;

	do {
		digits[count++] = '0' + n % 10;
		n /= 10;
	} while (n > 0);
	while (count > 0)
		*at++ = digits[--count];
	return at;
}

/* Writes the file at `file`; returns its end. */
static unsigned char *as_file(const struct picture *p, unsigned char *file)
{
	unsigned channels = p->channels, colours = channels < 3 ? 1 : 3;
	unsigned long n = (unsigned long)p->width * p->height;
	const unsigned char *from = p->pixels;

	*file++ = 'P';
	*file++ = colours == 1 ? '5' : '6';
	*file++ = '\n';
	file = number(file, p->width);
	*file++ = ' ';
	file = number(file, p->height);
	for (const char *rest = "\n255\n"; *rest; rest++)
		*file++ = *rest;
	for (; n > 0; n--, from += channels)
		for (unsigned c = 0; c < colours; c++)
			*file++ = from[c];
	return file;
}

/* What has passed is remembered by its first three bytes: where they were last, and one more. */
static unsigned long table[HASHES];

static void pack(struct writer *w, const unsigned char *file, unsigned long n)
{
	unsigned long i = 0;

	for (unsigned h = 0; h < HASHES; h++)
		table[h] = 0;
	put(w, 3, 3); /* the last block, of fixed codes */
	while (i < n) {
		unsigned length = 0;
		unsigned long before = 0;

		if (i + 3 <= n) {
			unsigned h = ((file[i] << 16 | file[i + 1] << 8 | file[i + 2]) * 2654435761u) >> 20;
			unsigned long most = n - i < LONGEST ? n - i : LONGEST;

			before = table[h];
			table[h] = i + 1;
			if (before > 0 && i + 1 - before < WINDOW)
				while (length < most && file[before - 1 + length] == file[i + length])
					length++;
		}
		if (length >= 3) {
			repeat(w, length, i + 1 - before);
			i += length;
		} else {
			symbol(w, file[i]);
			i++;
		}
	}
	symbol(w, 256);
	put(w, 0, 7);
}

static unsigned checksum(const unsigned char *file, unsigned long n)
{
	unsigned a = 1, b = 0;

	while (n > 0) {
		unsigned long part = n < 5552 ? n : 5552;

		n -= part;
		for (; part > 0; part--) {
			a += *file++;
			b += a;
		}
		a %= 65521;
		b %= 65521;
	}
	return b << 16 | a;
}

int deflate(struct picture *p)
{
	unsigned long pixels = (unsigned long)p->width * p->height * (p->channels < 3 ? 1 : 3);
	unsigned long most = pixels + 64;
	unsigned char *file;
	struct writer w = { p->out, 0, 0 };
	unsigned sum;

	/* The stream is at most nine eighths of the file, which lies behind it. */
	if (p->room / 2 < most || p->room - most < most + most / 8 + 64)
		return PICTURE_ARGUMENTS;
	file = p->out + (p->room - most);
	most = as_file(p, file) - file;
	*w.at++ = 0x78;
	*w.at++ = 0x01;
	pack(&w, file, most);
	sum = checksum(file, most);
	for (int i = 24; i >= 0; i -= 8)
		*w.at++ = sum >> i;
	p->size = w.at - p->out;
	p->answer = PICTURE_PPM_DEFLATE;
	return PICTURE_DONE;
}
