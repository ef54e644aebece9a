/* What the tools have in common: errors with the tool's name before them, options, bytes from one
   descriptor to another, names put together. */
#ifndef TOOL_H
#define TOOL_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *tool_name __attribute__((unused));
static int tool_failed __attribute__((unused));

/* `TOOL: WHAT: why`, by `errno`; the tool goes on, and ends with 1. */
static inline int complain(const char *what)
{
	int error = errno;
	fflush(stdout);
	fprintf(stderr, "%s: %s: %s\n", tool_name, what, strerror(error));
	tool_failed = 1;
	return 1;
}

/* The same in words. */
static inline int complain_words(const char *what, const char *why)
{
	fflush(stdout);
	fprintf(stderr, "%s: %s: %s\n", tool_name, what, why);
	tool_failed = 1;
	return 1;
}

/* How it is called, to the errors; ends the tool. */
static inline _Noreturn void usage(const char *words)
{
	fprintf(stderr, "%s: %s %s\n", tool_name, tool_name, words);
	exit(2);
}

/* Options that are letters without values, as bits of a word by their place in `letters`. What is
   not among them ends the tool. The arguments begin at `optind`. */
static inline unsigned options(int count, char **arguments, const char *letters, const char *words)
{
	unsigned found = 0;
	int rest = 0, ended = 0;
	char **others = malloc((count + 1) * sizeof *others);
	tool_name = strrchr(arguments[0], '/');
	tool_name = tool_name ? tool_name + 1 : arguments[0];
	/* As GNU's, they may stand behind names; `-` is a name. */
	for (int at = 1; at < count && others; at++) {
		const char *word = arguments[at];
		if (ended || word[0] != '-' || !word[1]) {
			others[rest++] = arguments[at];
		} else if (!strcmp(word, "--")) {
			ended = 1;
		} else if (!strcmp(word, "--help")) {
			printf("%s %s\n", tool_name, words);
			exit(0);
		} else {
			while (*++word) {
				const char *place = strchr(letters, *word);
				if (!place)
					usage(words);
				found |= 1u << (place - letters);
			}
		}
	}
	optind = count - rest;
	for (int at = 0; at < rest; at++)
		arguments[optind + at] = others[at];
	free(others);
	return found;
}

static inline void *need(size_t size)
{
	void *memory = malloc(size ? size : 1);
	if (!memory) {
		complain("memory");
		exit(1);
	}
	return memory;
}

/* `FOLDER/NAME`, to be freed. */
static inline char *joined(const char *folder, const char *name)
{
	size_t length = strlen(folder);
	char *both = need(length + strlen(name) + 2);
	const char *between = length && folder[length - 1] == '/' ? "" : "/";
	sprintf(both, "%s%s%s", folder, between, name);
	return both;
}

/* What is behind the last slash. */
static inline const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

static inline int is_folder(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Writes all. */
static inline int put_all(int to, const char *bytes, size_t length)
{
	while (length) {
		ssize_t done = write(to, bytes, length);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -1;
		bytes += done;
		length -= done;
	}
	return 0;
}

/* Copies to the end; -1: reading, -2: writing has failed. */
static inline int copy_all(int from, int to)
{
	static char bytes[16384];
	for (;;) {
		ssize_t length = read(from, bytes, sizeof bytes);
		if (length < 0 && errno == EINTR)
			continue;
		if (length <= 0)
			return length < 0 ? -1 : 0;
		if (put_all(to, bytes, length))
			return -2;
	}
}

/* A line of a file with its newline, in memory of `*line`, which grows; its length, or -1. */
static inline ssize_t next_line(FILE *file, char **line, size_t *room)
{
	size_t length = 0;
	int byte = 0;
	while (byte != '\n' && (byte = getc(file)) != EOF) {
		if (length + 2 > *room) {
			char *more = need(*room = *room ? 2 * *room : 128);
			if (length)
				memcpy(more, *line, length);
			free(*line);
			*line = more;
		}
		(*line)[length++] = (char)byte;
	}
	if (!length)
		return -1;
	(*line)[length] = '\0';
	return length;
}

/* An input by its name: `-` is what comes in. NULL: it has complained. */
static inline FILE *input(const char *name)
{
	FILE *file = strcmp(name, "-") ? fopen(name, "r") : stdin;
	if (file && is_folder(name) && file != stdin) {
		fclose(file);
		file = NULL;
		errno = EISDIR;
	}
	if (!file)
		complain(name);
	return file;
}

static inline void done_with(FILE *file)
{
	if (file != stdin)
		fclose(file);
}

/* The names in a folder but `.` and `..`, sorted by their bytes; -1: it has complained. */
struct names {
	char **name;
	int count;
};

static inline int by_bytes(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

static inline int names_in(const char *path, struct names *names)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	int room = 0;
	*names = (struct names){0};
	if (!folder) {
		complain(path);
		return -1;
	}
	while ((entry = readdir(folder))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (names->count == room) {
			char **more = need((room = room ? 2 * room : 32) * sizeof *more);
			if (names->count)
				memcpy(more, names->name, names->count * sizeof *more);
			free(names->name);
			names->name = more;
		}
		names->name[names->count++] = strdup(entry->d_name);
	}
	closedir(folder);
	qsort(names->name, names->count, sizeof *names->name, by_bytes);
	return 0;
}

static inline void names_free(struct names *names)
{
	for (int each = 0; each < names->count; each++)
		free(names->name[each]);
	free(names->name);
}

/* The end of a tool: what it wrote has to be there. */
static inline int finished(void)
{
	if (fflush(stdout) || ferror(stdout))
		complain("output");
	return tool_failed;
}

#endif
