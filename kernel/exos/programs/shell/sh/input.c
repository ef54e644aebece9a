/* Lines: of the terminal, a file, a string. */
#include "sh.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Byte by byte, so that what is behind the line is left to the commands that read the same file. */
static char *line_of_file(struct input *input, int again)
{
	char *line = NULL;
	size_t length = 0, room = 0;
	(void)again;
	for (;;) {
		char byte;
		ssize_t done = read(input->file, &byte, 1);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0 && !line)
			return NULL;
		if (length + 1 >= room) {
			char *more = get(room = room ? 2 * room : 128);
			if (length)
				memcpy(more, line, length);
			free(line);
			line = more;
		}
		line[length] = '\0';
		if (done <= 0 || byte == '\n')
			return line;
		if (byte)
			line[length++] = byte;
	}
}

struct input input_of_file(int file)
{
	return (struct input){.next = line_of_file, .file = file};
}

static char *line_of_text(struct input *input, int again)
{
	(void)again;
	if (!*input->text)
		return NULL;
	size_t length = strcspn(input->text, "\n");
	char *line = copied(input->text, length);
	input->text += length + (input->text[length] == '\n');
	return line;
}

struct input input_of_text(const char *text)
{
	return (struct input){.next = line_of_text, .text = text};
}

static char *line_of_terminal(struct input *input, int again)
{
	char folder[512], prompt[600];
	(void)input;
	if (!getcwd(folder, sizeof folder))
		strcpy(folder, "?");
	snprintf(prompt, sizeof prompt, "%s$ ", folder);
	return edited_line(again ? "> " : prompt);
}

struct input input_of_terminal(void)
{
	return (struct input){.next = line_of_terminal};
}
