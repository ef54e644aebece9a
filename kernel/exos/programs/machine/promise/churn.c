/* Random operations in a folder, of which anything may be lost but what was synchronised. */
#include "promise.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 12, MOST = 150000, PIECE = 20000 };

static uint64_t state;
static char promised[FILES];
static const char *above;

static unsigned random_below(unsigned end)
{
	state = state * 6364136223846793005 + 1442695040888963407;
	return (unsigned)(state >> 33) % end;
}

static const char *path_of(unsigned file)
{
	static char paths[2][256];
	static unsigned turn;
	turn ^= 1;
	snprintf(paths[turn], sizeof paths[turn], "%s/%s%u", above, file % 3 ? "" : "long-name-of-a-file-", file);
	return paths[turn];
}

/* A file may be anything from now on. */
static int begin(unsigned file)
{
	if (!promised[file])
		return 0;
	promised[file] = 0;
	promise_add("begin %s\n", path_of(file));
	return promise_say();
}

static int write_some(unsigned file)
{
	static char bytes[PIECE];
	int result = 0;
	int to = open(path_of(file), O_WRONLY | O_CREAT, 0644);
	if (to < 0)
		return -1;
	unsigned size = 1 + random_below(PIECE);
	memset(bytes, 'a' + random_below(26), size);
	lseek(to, random_below(3) ? random_below(MOST) : 0, random_below(2) ? SEEK_END : SEEK_SET);
	if (write(to, bytes, size) < 0)
		result = -1;
	if (random_below(4) == 0) {
		result |= fsync(to);
		result |= promise_add_file(path_of(file));
		result |= promise_say();
		promised[file] = 1;
	}
	close(to);
	return result;
}

int churn(const char *folder, uint64_t seed, unsigned count)
{
	int result = 0;
	state = seed * 0x9e3779b97f4a7c15 + 1;
	above = folder;
	while (count-- && !result) {
		unsigned file = random_below(FILES), other = random_below(FILES);
		result |= begin(file);
		switch (random_below(8)) {
		case 0:
			unlink(path_of(file));
			break;
		case 1:
			if (other == file)
				break;
			result |= begin(other);
			rename(path_of(file), path_of(other));
			break;
		case 2:
			truncate(path_of(file), random_below(MOST));
			break;
		default:
			result |= write_some(file);
		}
	}
	if (result)
		perror("churn");
	return result;
}
