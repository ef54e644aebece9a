/* Descriptors: files of the archive, offsets that parent and child have in common, numbers. */
#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* This program itself is a file of the archive. */
static const char *own;

static void files_are_read(void)
{
	char head[4], again[4];
	struct stat status;
	int file = open(own, O_RDONLY);
	CHECK(file >= 3);
	CHECK(read(file, head, 4) == 4 && !memcmp(head, "\177ELF", 4));
	CHECK(lseek(file, 0, SEEK_CUR) == 4 && lseek(file, 1, SEEK_SET) == 1);
	CHECK(read(file, again, 3) == 3 && !memcmp(again, "ELF", 3));
	CHECK(fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 4096);
	CHECK(lseek(file, 0, SEEK_END) == status.st_size && read(file, head, 4) == 0);
	CHECK(lseek(file, -3, SEEK_END) > 0 && read(file, head, 4) == 3);
	CHECK(write(file, head, 1) == -1 && errno == EBADF);
	CHECK(close(file) == 0 && close(file) == -1 && errno == EBADF);
}

static void what_is_not_there(void)
{
	struct stat status;
	CHECK(open("nothing", O_RDONLY) == -1 && errno == ENOENT);
	CHECK(open(own, O_WRONLY) == -1 && errno == EROFS);
	CHECK(stat("nothing", &status) == -1 && errno == ENOENT);
	CHECK(read(63, &status, 1) == -1 && errno == EBADF);
	CHECK(read(-1, &status, 1) == -1 && errno == EBADF);
	CHECK(dup2(1, 64) == -1 && errno == EBADF);
	CHECK(unlink(own) == -1 && errno == EROFS);
}

static void offsets_are_in_common(void)
{
	char byte;
	int file = open(own, O_RDONLY);
	int other = dup(file);
	CHECK(file >= 0 && other > file);
	CHECK(read(file, &byte, 1) == 1 && lseek(other, 0, SEEK_CUR) == 1);
	pid_t pid = fork();
	if (pid == 0) {
		char bytes[9];
		_exit(read(other, bytes, 9) == 9 ? 0 : 1);
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(lseek(file, 0, SEEK_CUR) == 10);
	/* What is opened from now on is its own. */
	int third = open(own, O_RDONLY);
	CHECK(lseek(third, 0, SEEK_CUR) == 0 && lseek(file, 0, SEEK_CUR) == 10);
	CHECK(close(file) == 0 && lseek(other, 0, SEEK_CUR) == 10);
	CHECK(close(other) == 0 && close(third) == 0);
}

static void numbers_run_out(void)
{
	int files[80], count = 0;
	while (count < 80 && (files[count] = dup(1)) >= 0)
		count++;
	int error = errno;
	for (int at = 0; at < count; at++)
		close(files[at]);
	CHECK(count > 10 && count < 80 && error == EMFILE);
}

static void many_are_opened(void)
{
	for (int round = 0; round < 1500; round++) {
		int file = open(own, O_RDONLY);
		CHECK(file >= 0 && lseek(file, 0, SEEK_CUR) == 0);
		CHECK(lseek(file, round, SEEK_SET) == round && close(file) == 0);
	}
}


static void pipes_end(void)
{
	int ends[2];
	char bytes[16];
	CHECK(pipe(ends) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		_exit(write(ends[1], "through", 7) == 7 ? 0 : 1);
	}
	close(ends[1]);
	CHECK(read(ends[0], bytes, 16) == 7 && !memcmp(bytes, "through", 7));
	CHECK(read(ends[0], bytes, 16) == 0);
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	close(ends[0]);
}

static void folders_are_listed(void)
{
	DIR *folder = opendir("/");
	struct dirent *entry;
	int found = 0, all = 0;
	CHECK(folder != NULL);
	while ((entry = readdir(folder))) {
		all++;
		found |= !strcmp(entry->d_name, own);
	}
	CHECK(found && all > 0);
	CHECK(closedir(folder) == 0);
	CHECK(opendir(own) == NULL && errno == ENOTDIR);
}

static int look(int stays, int gone)
{
	char bytes[2];
	int well = lseek(stays, 0, SEEK_CUR) == 7 && read(stays, bytes, 2) == 2 && read(gone, bytes, 1) == -1 && errno == EBADF;
	return well ? 33 : 1;
}

static void descriptors_stay_over_exec(void)
{
	/* Which numbers are free is the parent's affair. */
	int file = open(own, O_RDONLY), closes = open(own, O_RDONLY | O_CLOEXEC), status;
	char stays[12], gone[12];
	snprintf(stays, sizeof stays, "%d", file);
	snprintf(gone, sizeof gone, "%d", closes);
	CHECK(file >= 0 && closes >= 0 && lseek(file, 7, SEEK_SET) == 7);
	pid_t pid = fork();
	if (pid == 0) {
		char *words[] = {(char *)own, stays, gone, NULL};
		execv(own, words);
		_exit(1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 33);
	CHECK(lseek(file, 0, SEEK_CUR) == 9);
	close(file);
	close(closes);
}

int main(int count, char **words)
{
	own = words[0];
	if (count == 3)
		return look(atoi(words[1]), atoi(words[2]));
	RUN(files_are_read);
	RUN(what_is_not_there);
	RUN(offsets_are_in_common);
	RUN(numbers_run_out);
	RUN(many_are_opened);
	RUN(descriptors_stay_over_exec);
	RUN(pipes_end);
	RUN(folders_are_listed);
	return failures != 0;
}
