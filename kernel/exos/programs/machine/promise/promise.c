#include "promise.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <exos/disk.h>
#include <exos/service.h>

enum { PAGE = 4096, HEAD = 64, BODY = PAGE - HEAD };

static char *text;
static size_t length, room;

void promise_add(const char *format, ...)
{
	char line[PATH_MAX + 128];
	va_list values;
	va_start(values, format);
	int size = vsnprintf(line, sizeof line, format, values);
	va_end(values);
	if (length + size + 1 > room) {
		room = 2 * (length + size + 1);
		text = realloc(text, room);
		if (!text)
			abort();
	}
	memcpy(text + length, line, size);
	length += size;
}

/* FNV-1a of 64 bits (Fowler, Noll, Vo). */
static uint64_t sum_of(uint64_t sum, const char *bytes, size_t count)
{
	for (size_t at = 0; at < count; at++)
		sum = (sum ^ (unsigned char)bytes[at]) * 0x100000001b3;
	return sum;
}

static const uint64_t none = 0xcbf29ce484222325;

int promise_add_file(const char *path)
{
	static char buffer[16 * PAGE];
	uint64_t sum = none, size = 0;
	int file = open(path, O_RDONLY);
	if (file < 0)
		return -1;
	ssize_t got;
	while ((got = read(file, buffer, sizeof buffer)) > 0) {
		sum = sum_of(sum, buffer, got);
		size += got;
	}
	close(file);
	promise_add("file %llu %llx %s\n", (unsigned long long)size, (unsigned long long)sum, path);
	return got < 0 ? -1 : 0;
}

static int add_link(const char *path)
{
	char target[PATH_MAX];
	ssize_t size = readlink(path, target, sizeof target);
	if (size >= 0)
		promise_add("link %zd %llx %s\n", size, (unsigned long long)sum_of(none, target, size), path);
	return size < 0 ? -1 : 0;
}

static int tree(const char *folder, dev_t device)
{
	char path[PATH_MAX];
	struct stat found;
	int result = 0;
	DIR *names = opendir(*folder ? folder : "/");
	if (!names)
		return -1;
	for (struct dirent *name; (name = readdir(names));) {
		if (!strcmp(name->d_name, ".") || !strcmp(name->d_name, ".."))
			continue;
		snprintf(path, sizeof path, "%s/%s", folder, name->d_name);
		/* What other servers have is not on the disk. */
		if (lstat(path, &found) || found.st_dev != device)
			continue;
		if (S_ISDIR(found.st_mode)) {
			promise_add("folder %s\n", path);
			result |= tree(path, device);
		} else if (S_ISLNK(found.st_mode)) {
			result |= add_link(path);
		} else {
			result |= promise_add_file(path);
		}
	}
	closedir(names);
	return result;
}

int promise_add_tree(const char *folder)
{
	struct stat found;
	if (stat(*folder ? folder : "/", &found))
		return -1;
	promise_add("tree\n");
	return tree(folder, found.st_dev);
}

int promise_say(void)
{
	static char page[PAGE] __attribute__((aligned(PAGE)));
	static int range;
	static unsigned said;
	size_t parts = length / BODY + 1;
	if (range <= 0 && (range = (int)exos_blocks(1)) < 0)
		return -1;
	said++;
	for (size_t part = 0; part < parts; part++) {
		size_t from = part * BODY, size = length - from < BODY ? length - from : BODY;
		memset(page, 0, PAGE);
		int head = snprintf(page, HEAD, "promise %llu %zu %zu\n", (unsigned long long)said << 16 | getpid(), part, parts);
		memcpy(page + head, text + from, size);
		if (exos_disk_write(range, 0, page, 1))
			return -1;
	}
	length = 0;
	return 0;
}
