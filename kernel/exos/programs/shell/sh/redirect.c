/* < and >, here-documents. */
#include "sh.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_SAVED = 10, PIPE_HOLDS = 4096 };

/* A descriptor from which a document is read. Who is long needs a process that writes it. */
static int document(const struct redirect *redirect)
{
	int ends[2];
	char *text = redirect->direction == DOCUMENT ? expand_document(redirect->word)
						     : copied(redirect->word, strlen(redirect->word));
	size_t length = strlen(text), done = 0;
	if (pipe(ends) < 0) {
		free(text);
		return -1;
	}
	pid_t pid = length > PIPE_HOLDS ? fork() : 0;
	if (pid == 0) {
		while (done < length) {
			ssize_t now = write(ends[1], text + done, length - done);
			if (now <= 0)
				break;
			done += now;
		}
		if (length > PIPE_HOLDS)
			_exit(0);
	}
	free(text);
	close(ends[1]);
	return ends[0];
}

static int opened(const struct redirect *redirect, const char *name)
{
	struct stat status;
	switch (redirect->direction) {
	case FROM: return open(name, O_RDONLY);
	case INTO:
		if (shell.keeps && stat(name, &status) == 0 && S_ISREG(status.st_mode)) {
			errno = EEXIST;
			return -1;
		}
		/* Falls through. */
	case OVER: return open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	case BEHIND: return open(name, O_WRONLY | O_CREAT | O_APPEND, 0666);
	case BOTH_WAYS: return open(name, O_RDWR | O_CREAT, 0666);
	default: return document(redirect);
	}
}

/* What a number was, so that it can be so again. */
static void save(struct list *saved, int number)
{
	char text[32];
	int copy = fcntl(number, F_DUPFD, FIRST_SAVED);
	if (copy >= 0)
		fcntl(copy, F_SETFD, FD_CLOEXEC);
	snprintf(text, sizeof text, "%d %d", number, copy);
	list_add(saved, copied(text, strlen(text)));
}

/* Does them in order. `saved` hears of what was there before, unless this process ends with the
   command. -1: it has said why. */
int redirect(struct redirect *redirects, struct list *saved)
{
	for (; redirects; redirects = redirects->next) {
		int number = redirects->number, file = -1, closes = 0;
		int document = redirects->direction >= DOCUMENT;
		char *name = document ? NULL : expand_one(redirects->word);
		if (shell.failed) {
			free(name);
			return -1;
		}
		if (saved) {
			fflush(stdout);
			save(saved, number);
		}
		if (redirects->direction == SAME) {
			closes = !strcmp(name, "-");
			char *end = name;
			file = (int)strtol(name, &end, 10);
			if (!closes && (*end || end == name))
				file = -1;
			if (closes)
				close(number);
			else if (dup2(file, number) < 0) {
				complain(name, strerror(errno));
				free(name);
				return -1;
			}
		} else {
			file = opened(redirects, name);
			if (file < 0) {
				complain(name ? name : "<<", strerror(errno));
				free(name);
				return -1;
			}
			if (file != number) {
				dup2(file, number);
				close(file);
			}
		}
		free(name);
	}
	return 0;
}

/* As it was, the last one first. */
void restore(struct list *saved)
{
	fflush(stdout);
	while (saved->count) {
		int number, copy;
		char *text = saved->item[--saved->count];
		if (sscanf(text, "%d %d", &number, &copy) == 2) {
			if (copy < 0)
				close(number);
			else
				dup2(copy, number), close(copy);
		}
		free(text);
	}
	list_clear(saved);
}
