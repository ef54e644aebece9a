/* Lines with history, at a terminal: Left, Right, Home, End, Up, Down, Backspace, Delete, and the
   letters with Ctrl that stand for them elsewhere. */
#include "sh.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { LINE = 1024, HISTORY = 64 };
enum { CTRL_A = 1, CTRL_B, CTRL_C, CTRL_D, CTRL_E, CTRL_F, CTRL_K = 11, CTRL_L, CTRL_N = 14, CTRL_P = 16,
       CTRL_U = 21, ESCAPE = 27 };

static char *history[HISTORY];
static int remembered;

struct edit {
	const char *prompt;
	char text[LINE];
	int length, at;
	/* The line of the history that is shown; `remembered`: the new one. */
	int shown;
	char saved[LINE];
};

static int byte_typed(void)
{
	char byte;
	ssize_t done;
	do
		done = read(STDIN_FILENO, &byte, 1);
	while (done < 0 && errno == EINTR);
	return done == 1 ? (unsigned char)byte : -1;
}

static void show(const char *bytes, int length)
{
	while (length > 0) {
		ssize_t done = write(STDOUT_FILENO, bytes, length);
		if (done <= 0)
			return;
		bytes += done;
		length -= done;
	}
}

/* What is behind the place, once more, and the place as it is; `gone` bytes more stood there. */
static void redraw_end(struct edit *edit, int gone)
{
	show(edit->text + edit->at, edit->length - edit->at);
	for (int each = 0; each < gone; each++)
		show(" ", 1);
	for (int each = edit->length - edit->at + gone; each > 0; each--)
		show("\b", 1);
}

static void go(struct edit *edit, int to)
{
	for (; edit->at > to; edit->at--)
		show("\b", 1);
	if (to > edit->at)
		show(edit->text + edit->at, to - edit->at);
	edit->at = to;
}

static void erase(struct edit *edit, int from, int to)
{
	go(edit, from);
	memmove(edit->text + from, edit->text + to, edit->length - to);
	edit->length -= to - from;
	redraw_end(edit, to - from);
}

static void insert(struct edit *edit, char byte)
{
	if (edit->length + 1 >= LINE)
		return;
	memmove(edit->text + edit->at + 1, edit->text + edit->at, edit->length - edit->at);
	edit->text[edit->at] = byte;
	edit->length++;
	edit->at++;
	show(&byte, 1);
	redraw_end(edit, 0);
}

static void recall(struct edit *edit, int which)
{
	int oldest = remembered > HISTORY ? remembered - HISTORY : 0;
	if (which < oldest || which > remembered)
		return;
	if (edit->shown == remembered) {
		memcpy(edit->saved, edit->text, edit->length);
		edit->saved[edit->length] = '\0';
	}
	const char *line = which == remembered ? edit->saved : history[which % HISTORY];
	erase(edit, 0, edit->length);
	for (; *line; line++)
		insert(edit, *line);
	edit->shown = which;
}

static void escaped(struct edit *edit)
{
	int byte = byte_typed();
	if (byte != '[' && byte != 'O')
		return;
	byte = byte_typed();
	int number = 0;
	for (; byte >= '0' && byte <= '9'; byte = byte_typed())
		number = (10 * number + byte - '0') % 100;
	if (byte == 'A')
		recall(edit, edit->shown - 1);
	else if (byte == 'B')
		recall(edit, edit->shown + 1);
	else if (byte == 'C' && edit->at < edit->length)
		go(edit, edit->at + 1);
	else if (byte == 'D' && edit->at > 0)
		go(edit, edit->at - 1);
	else if (byte == 'H' || (byte == '~' && number == 1))
		go(edit, 0);
	else if (byte == 'F' || (byte == '~' && number == 4))
		go(edit, edit->length);
	else if (byte == '~' && number == 3 && edit->at < edit->length)
		erase(edit, edit->at, edit->at + 1);
}

/* 1: the line is there; 0: it goes on; below zero: nobody types any more. */
static int typed(struct edit *edit, int byte)
{
	switch (byte) {
	case '\r': case '\n':
		show("\n", 1);
		return 1;
	case CTRL_C:
		show("^C\n", 3);
		edit->length = 0;
		return 1;
	case CTRL_D:
		if (!edit->length)
			return -1;
		if (edit->at < edit->length)
			erase(edit, edit->at, edit->at + 1);
		break;
	case '\b': case 127:
		if (edit->at > 0)
			erase(edit, edit->at - 1, edit->at);
		break;
	case CTRL_U: erase(edit, 0, edit->at); break;
	case CTRL_K: erase(edit, edit->at, edit->length); break;
	case CTRL_A: go(edit, 0); break;
	case CTRL_E: go(edit, edit->length); break;
	case CTRL_B: go(edit, edit->at ? edit->at - 1 : 0); break;
	case CTRL_F: go(edit, edit->at < edit->length ? edit->at + 1 : edit->at); break;
	case CTRL_P: recall(edit, edit->shown - 1); break;
	case CTRL_N: recall(edit, edit->shown + 1); break;
	case CTRL_L:
		show("\033[H\033[J", 6);
		show(edit->prompt, strlen(edit->prompt));
		show(edit->text, edit->length);
		for (int each = edit->length; each > edit->at; each--)
			show("\b", 1);
		break;
	case ESCAPE: escaped(edit); break;
	case -1: return -1;
	default:
		if (byte >= ' ' || byte == '\t')
			insert(edit, (char)byte);
	}
	return 0;
}

static void remember(const char *line)
{
	if (!*line || (remembered && !strcmp(history[(remembered - 1) % HISTORY], line)))
		return;
	free(history[remembered % HISTORY]);
	history[remembered++ % HISTORY] = copied(line, strlen(line));
}

/* A line that somebody types, to be freed; NULL: there is none any more. */
char *edited_line(const char *prompt)
{
	static struct edit edit;
	struct termios before, now;
	int done = 0;
	edit.length = edit.at = 0;
	edit.shown = remembered;
	edit.prompt = prompt;
	show(prompt, strlen(prompt));
	int raw = tcgetattr(STDIN_FILENO, &before) == 0;
	if (raw) {
		now = before;
		now.c_lflag &= ~(ICANON | ECHO | ISIG);
		now.c_cc[VMIN] = 1;
		now.c_cc[VTIME] = 0;
		tcsetattr(STDIN_FILENO, TCSADRAIN, &now);
	}
	while (!done)
		done = typed(&edit, byte_typed());
	if (raw)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
	if (done < 0) {
		show("\n", 1);
		return NULL;
	}
	edit.text[edit.length] = '\0';
	remember(edit.text);
	return copied(edit.text, edit.length);
}
