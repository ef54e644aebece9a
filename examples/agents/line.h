/* line.h: a line of text that is put together and printed at once. */
#ifndef LINE_H
#define LINE_H

#include <postern/agent.h>
#include <stdarg.h>
#include <stdio.h>

struct line {
	unsigned length;
	char text[8000];
};

/* Adds text; what has no room is left out. */
__attribute__((format(printf, 2, 3))) static inline void put(struct line *line, const char *format, ...)
{
	va_list words;
	va_start(words, format);
	unsigned room = sizeof line->text - line->length;
	int length = vsnprintf(line->text + line->length, room, format, words);
	va_end(words);
	if (length > 0)
		line->length += (unsigned)length < room ? (unsigned)length : room - 1;
}

static inline void put_byte(struct line *line, char byte)
{
	if (line->length + 1 < sizeof line->text)
		line->text[line->length++] = byte;
}

/* Prints it, with the line's end. */
static inline void put_out(struct line *line)
{
	if (line->length == sizeof line->text)
		line->length--;
	line->text[line->length++] = '\n';
	pt_print(line->text, line->length);
	line->length = 0;
}

/* Copies a string of the program's, with its zero, at most `room` bytes: its length, `room` if it is
 * longer, or -1 if it is not there. */
static inline int read_string(unsigned long from, char *to, unsigned room)
{
	unsigned done = 0;
	while (done < room) {
		/* Never over the end of a page, behind which there may be nothing. */
		unsigned piece = 256 - (from + done) % 256;
		if (piece > room - done)
			piece = room - done;
		if (pt_program_read(from + done, to + done, piece) != 0)
			return -1;
		for (unsigned at = done; at < done + piece; at++)
			if (to[at] == 0)
				return at;
		done += piece;
	}
	return room;
}

#endif
