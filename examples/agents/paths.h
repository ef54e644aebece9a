/* paths.h: where calls have their paths: which of their words, and the folder that it starts from. */
#ifndef PATHS_H
#define PATHS_H

#include "line.h"
#include <string.h>

/* The working folder. */
enum { HERE = 9 };

/* Up to two paths in a call: the number of the word, and that of its folder's descriptor. */
static const struct path_call {
	unsigned short call;
	struct {
		unsigned char word, folder;
	} paths[2];
	unsigned char count;
} path_calls[] = {
	{2, {{0, HERE}}, 1},   /* open */
	{4, {{0, HERE}}, 1},   /* stat */
	{6, {{0, HERE}}, 1},   /* lstat */
	{21, {{0, HERE}}, 1},  /* access */
	{59, {{0, HERE}}, 1},  /* execve */
	{76, {{0, HERE}}, 1},  /* truncate */
	{80, {{0, HERE}}, 1},  /* chdir */
	{82, {{0, HERE}, {1, HERE}}, 2}, /* rename */
	{83, {{0, HERE}}, 1},  /* mkdir */
	{84, {{0, HERE}}, 1},  /* rmdir */
	{85, {{0, HERE}}, 1},  /* creat */
	{86, {{0, HERE}, {1, HERE}}, 2}, /* link */
	{87, {{0, HERE}}, 1},  /* unlink */
	{88, {{1, HERE}}, 1},  /* symlink: what it leads to is no path of this call's */
	{89, {{0, HERE}}, 1},  /* readlink */
	{90, {{0, HERE}}, 1},  /* chmod */
	{92, {{0, HERE}}, 1},  /* chown */
	{94, {{0, HERE}}, 1},  /* lchown */
	{132, {{0, HERE}}, 1}, /* utime */
	{133, {{0, HERE}}, 1}, /* mknod */
	{137, {{0, HERE}}, 1}, /* statfs */
	{188, {{0, HERE}}, 1}, /* setxattr */
	{189, {{0, HERE}}, 1}, /* lsetxattr */
	{191, {{0, HERE}}, 1}, /* getxattr */
	{192, {{0, HERE}}, 1}, /* lgetxattr */
	{194, {{0, HERE}}, 1}, /* listxattr */
	{195, {{0, HERE}}, 1}, /* llistxattr */
	{197, {{0, HERE}}, 1}, /* removexattr */
	{198, {{0, HERE}}, 1}, /* lremovexattr */
	{235, {{0, HERE}}, 1}, /* utimes */
	{254, {{1, HERE}}, 1}, /* inotify_add_watch */
	{257, {{1, 0}}, 1},    /* openat */
	{258, {{1, 0}}, 1},    /* mkdirat */
	{259, {{1, 0}}, 1},    /* mknodat */
	{260, {{1, 0}}, 1},    /* fchownat */
	{261, {{1, 0}}, 1},    /* futimesat */
	{262, {{1, 0}}, 1},    /* newfstatat */
	{263, {{1, 0}}, 1},    /* unlinkat */
	{264, {{1, 0}, {3, 2}}, 2}, /* renameat */
	{265, {{1, 0}, {3, 2}}, 2}, /* linkat */
	{266, {{2, 1}}, 1},    /* symlinkat */
	{267, {{1, 0}}, 1},    /* readlinkat */
	{268, {{1, 0}}, 1},    /* fchmodat */
	{269, {{1, 0}}, 1},    /* faccessat */
	{280, {{1, 0}}, 1},    /* utimensat */
	{316, {{1, 0}, {3, 2}}, 2}, /* renameat2 */
	{322, {{1, 0}}, 1},    /* execveat */
	{332, {{1, 0}}, 1},    /* statx */
	{437, {{1, 0}}, 1},    /* openat2 */
	{439, {{1, 0}}, 1},    /* faccessat2 */
	{452, {{1, 0}}, 1},    /* fchmodat2 */
};

/* Where a call has paths, or a null pointer. */
static inline const struct path_call *paths_of(unsigned long number)
{
	for (unsigned at = 0; at < sizeof path_calls / sizeof path_calls[0]; at++)
		if (path_calls[at].call == number)
			return &path_calls[at];
	return 0;
}

enum { PATH_ROOM = 4096 };

/* The path without `.`, `..` and double slashes, in place: links are not followed. */
static inline void path_normal(char *path)
{
	char *to = path, *from = path;
	while (*from) {
		while (*from == '/')
			from++;
		unsigned length = strcspn(from, "/");
		if (length == 2 && from[0] == '.' && from[1] == '.') {
			while (to > path && *--to != '/')
				;
		} else if (length > 0 && !(length == 1 && from[0] == '.')) {
			*to++ = '/';
			memmove(to, from, length);
			to += length;
		}
		from += length;
	}
	if (to == path)
		*to++ = '/';
	*to = 0;
}

/* A folder's own path, by a descriptor or the working folder: its length, or -1. */
static inline int path_of_folder(int folder, char *to, unsigned room)
{
	enum { READLINK = 89, GETCWD = 79 };
	char name[32];
	struct pt_call call;
	to[0] = 0;
	if (folder == -100)
		call = (struct pt_call){.number = GETCWD, .arguments = {pt_address(to), room}};
	else {
		snprintf(name, sizeof name, "/proc/self/fd/%d", folder);
		call = (struct pt_call){
			.number = READLINK, .arguments = {pt_address(name), pt_address(to), room - 1}};
	}
	long got = pt_syscall(&call);
	if (got <= 0)
		return -1;
	if (folder != -100)
		to[got] = 0;
	return strlen(to);
}

/* The path in a call from the root, normal, in PATH_ROOM bytes: 1; 0: there is none, or it is no good
 * (the kernel will say why). `given` has it as the program gave it. */
static inline int path_whole(const struct pt_call *call, const struct path_call *which, unsigned at, char *given,
                             char *whole)
{
	unsigned long from = call->arguments[which->paths[at].word];
	unsigned folder = which->paths[at].folder;
	int length = from ? read_string(from, given, PATH_ROOM) : -1;
	if (length <= 0 || length >= PATH_ROOM)
		return 0;
	int start = 0;
	if (given[0] != '/') {
		start = path_of_folder(folder == HERE ? -100 : (int)call->arguments[folder], whole, PATH_ROOM - 1);
		if (start < 0 || whole[0] != '/')
			return 0;
		whole[start++] = '/';
	}
	if (start + length >= PATH_ROOM)
		return 0;
	memcpy(whole + start, given, length + 1);
	path_normal(whole);
	return 1;
}

#endif
