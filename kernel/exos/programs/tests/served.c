/* Files of a server, by C's functions: in the folder /served, or where the first argument says; with a
   second one, who serves it is there already. */
#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>

#include "server.h"

static char bytes[40000], more[40000];

static int has(const char *name, const char *wanted)
{
	int file = open(name, O_RDONLY);
	ssize_t got = read(file, more, sizeof more);
	close(file);
	return got == (ssize_t)strlen(wanted) && !memcmp(more, wanted, got);
}

static int put(const char *name, const char *what)
{
	int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	ssize_t done = write(file, what, strlen(what));
	return close(file) == 0 && done == (ssize_t)strlen(what);
}

static void bytes_stand_at_offsets(void)
{
	for (unsigned at = 0; at < sizeof bytes; at++)
		bytes[at] = at * 7 + at / 251;
	int file = open("a", O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK(file >= 0 && open("a", O_RDWR | O_CREAT | O_EXCL, 0600) == -1 && errno == EEXIST);
	CHECK(write(file, bytes, sizeof bytes) == sizeof bytes);
	CHECK(lseek(file, 0, SEEK_CUR) == sizeof bytes && read(file, more, 1) == 0);
	CHECK(pread(file, more, sizeof more, 0) == sizeof more && !memcmp(bytes, more, sizeof more));
	CHECK(pread(file, more, 100, 16380) == 100 && !memcmp(bytes + 16380, more, 100));
	CHECK(pread(file, more, 100, sizeof bytes - 7) == 7 && pread(file, more, 1, sizeof bytes) == 0);
	CHECK(pread(file, more, 1, 1l << 50) == 0 && pread(file, more, 1, -1) == -1 && errno == EINVAL);
	CHECK(pwrite(file, "xyz", 3, 4095) == 3 && lseek(file, 0, SEEK_CUR) == sizeof bytes);
	CHECK(pread(file, more, 5, 4094) == 5 && more[0] == bytes[4094] && !memcmp(more + 1, "xyz", 3) && more[4] == bytes[4098]);
	CHECK(lseek(file, 100, SEEK_END) == sizeof bytes + 100 && write(file, "e", 1) == 1);
	CHECK(pread(file, more, 101, sizeof bytes) == 101 && more[0] == 0 && more[99] == 0 && more[100] == 'e');
	CHECK(lseek(file, -1, SEEK_SET) == -1 && errno == EINVAL && lseek(file, 0, 9) == -1 && errno == EINVAL);
	CHECK(close(file) == 0 && unlink("a") == 0 && unlink("a") == -1 && errno == ENOENT);
}

static void pieces_are_one(void)
{
	char one[3], two[4];
	struct iovec in[] = { { "abc", 3 }, { NULL, 0 }, { "defg", 4 } };
	struct iovec out[] = { { one, 3 }, { two, 4 } };
	int file = open("v", O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(writev(file, in, 3) == 7 && lseek(file, 0, SEEK_SET) == 0);
	CHECK(readv(file, out, 2) == 7 && !memcmp(one, "abc", 3) && !memcmp(two, "defg", 4));
	CHECK(readv(file, out, 2) == 0 && lseek(file, 5, SEEK_SET) == 5);
	CHECK(readv(file, out, 2) == 2 && !memcmp(one, "fg", 2));
	CHECK(readv(file, out, -1) == -1 && errno == EINVAL);
	CHECK(close(file) == 0 && has("v", "abcdefg") && unlink("v") == 0);
}

static void flags_are_kept(void)
{
	CHECK(put("f", "one"));
	int file = open("f", O_WRONLY | O_APPEND);
	CHECK(lseek(file, 0, SEEK_SET) == 0 && write(file, "two", 3) == 3 && has("f", "onetwo"));
	CHECK(lseek(file, 0, SEEK_CUR) == 6 && read(file, more, 1) == -1 && errno == EBADF);
	CHECK((fcntl(file, F_GETFL) & (O_ACCMODE | O_APPEND)) == (O_WRONLY | O_APPEND));
	CHECK(fcntl(file, F_SETFL, 0) == 0 && lseek(file, 0, SEEK_SET) == 0 && write(file, "T", 1) == 1);
	CHECK(has("f", "Tnetwo") && close(file) == 0);
	file = open("f", O_RDONLY);
	CHECK(write(file, "x", 1) == -1 && errno == EBADF && ftruncate(file, 0) == -1 && errno == EINVAL);
	CHECK(close(file) == 0);
	file = open("f", O_RDWR | O_TRUNC);
	CHECK(has("f", "") && ftruncate(file, 10) == 0 && pread(file, more, 20, 0) == 10 && !more[0] && !more[9]);
	CHECK(truncate("f", 3) == 0 && lseek(file, 0, SEEK_END) == 3 && ftruncate(file, -1) == -1 && errno == EINVAL);
	CHECK(fsync(file) == 0 && fdatasync(file) == 0 && close(file) == 0);
	file = open("f", O_WRONLY | O_SYNC);
	CHECK(write(file, "s", 1) == 1 && close(file) == 0 && unlink("f") == 0);
	CHECK(open("nothing", O_RDONLY) == -1 && errno == ENOENT);
	CHECK(open("f/", O_WRONLY | O_CREAT, 0600) == -1 && errno == EISDIR);
	sync();
}

static void names_are_moved(void)
{
	struct stat one, two;
	CHECK(put("a", "A") && put("b", "B") && mkdir("d", 0755) == 0 && mkdir("d", 0755) == -1 && errno == EEXIST);
	CHECK(rename("a", "b") == 0 && has("b", "A") && access("a", F_OK) == -1 && errno == ENOENT);
	CHECK(rename("b", "d/c") == 0 && has("d/c", "A") && rename("b", "c") == -1 && errno == ENOENT);
	CHECK(link("d/c", "e") == 0 && stat("e", &one) == 0 && stat("d/c", &two) == 0);
	CHECK(one.st_ino == two.st_ino && one.st_dev == two.st_dev && one.st_nlink == 2 && S_ISREG(one.st_mode) && one.st_size == 1);
	CHECK(rmdir("d") == -1 && (errno == ENOTEMPTY || errno == EEXIST));
	CHECK(rmdir("e") == -1 && errno == ENOTDIR && unlink("d") == -1 && (errno == EISDIR || errno == EPERM));
	CHECK(mkdir("d/in", 0700) == 0 && rename("d", "d/in/d") == -1 && errno == EINVAL);
	CHECK(rename("d", "e") == -1 && errno == ENOTDIR && rename("e", "d") == -1 && errno == EISDIR);
	CHECK(open("e/x", O_RDONLY) == -1 && errno == ENOTDIR && mkdir("no/x", 0700) == -1 && errno == ENOENT);
	CHECK(unlink("d/c") == 0 && has("e", "A") && rmdir("d/in") == 0 && rmdir("d/") == 0 && unlink("e") == 0);
	memset(more, 'n', 300);
	more[300] = 0;
	CHECK(open(more, O_RDONLY) == -1 && errno == ENAMETOOLONG && mkdir(more, 0700) == -1 && errno == ENAMETOOLONG);
	CHECK(rmdir(".") == -1 && errno != ENOENT && unlink("") == -1 && errno == ENOENT);
}

static void links_lead_on(void)
{
	char path[PATH_MAX], here[PATH_MAX];
	struct stat status;
	CHECK(mkdir("d", 0755) == 0 && mkdir("d/e", 0755) == 0 && put("d/f", "F") && symlink("d/e", "l") == 0);
	CHECK(readlink("l", path, sizeof path) == 3 && !memcmp(path, "d/e", 3) && readlink("l", path, 2) == 2);
	CHECK(readlink("d", path, sizeof path) == -1 && errno == EINVAL);
	CHECK(has("l/../f", "F") && lstat("l", &status) == 0 && S_ISLNK(status.st_mode) && stat("l", &status) == 0 && S_ISDIR(status.st_mode));
	CHECK(open("l", O_RDONLY | O_NOFOLLOW) == -1 && errno == ELOOP);
	CHECK(getcwd(here, sizeof here) && realpath("l/..//./f", path) && strlen(path) == strlen(here) + 4);
	CHECK(!strncmp(path, here, strlen(here)) && !strcmp(path + strlen(here), "/d/f"));
	CHECK(!realpath("l/nothing/x", path) && errno == ENOENT);
	CHECK(symlink("loop", "loop") == 0 && open("loop", O_RDONLY) == -1 && errno == ELOOP && unlink("loop") == 0);
	/* Made where the link leads. */
	CHECK(symlink("d/made", "m") == 0 && put("m", "M") && has("d/made", "M"));
	CHECK(open("m", O_WRONLY | O_CREAT | O_EXCL, 0600) == -1 && errno == EEXIST);
	CHECK(unlink("m") == 0 && has("d/made", "M") && chdir("l") == 0 && getcwd(path, sizeof path));
	CHECK(!strcmp(path + strlen(here), "/d/e") && has("../f", "F") && chdir("../..") == 0);
	CHECK(getcwd(path, sizeof path) && !strcmp(path, here) && chdir("d/f") == -1 && errno == ENOTDIR);
	CHECK(unlink("l") == 0 && unlink("d/made") == 0 && unlink("d/f") == 0 && rmdir("d/e") == 0 && rmdir("d") == 0);
}

static void folders_are_listed(void)
{
	char name[32];
	int seen[120] = { 0 }, count = 0;
	CHECK(mkdir("d", 0755) == 0);
	for (int at = 0; at < 120; at++) {
		sprintf(name, "d/%d and a longer name", at);
		CHECK(put(name, ""));
	}
	DIR *folder = opendir("d");
	CHECK(folder != NULL);
	for (struct dirent *entry; (entry = readdir(folder));) {
		if (entry->d_name[0] == '.')
			continue;
		CHECK(atoi(entry->d_name) < 120 && entry->d_type == DT_REG);
		seen[atoi(entry->d_name)]++;
		CHECK(unlinkat(dirfd(folder), entry->d_name, 0) == 0);
		count++;
	}
	for (int at = 0; at < 120; at++)
		CHECK(seen[at] == 1);
	rewinddir(folder);
	for (struct dirent *entry; (entry = readdir(folder));)
		CHECK(entry->d_name[0] == '.');
	CHECK(count == 120 && closedir(folder) == 0 && rmdir("d") == 0);
	CHECK(put("d", "") && opendir("d") == NULL && errno == ENOTDIR && unlink("d") == 0);
}

static void names_stand_beside_folders(void)
{
	struct stat status;
	char path[64];
	CHECK(mkdir("d", 0755) == 0);
	int folder = open("d", O_RDONLY | O_DIRECTORY);
	int file = openat(folder, "f", O_WRONLY | O_CREAT, 0600);
	CHECK(folder >= 0 && write(file, "1234", 4) == 4 && close(file) == 0);
	CHECK(fstatat(folder, "f", &status, 0) == 0 && status.st_size == 4 && mkdirat(folder, "g", 0700) == 0);
	CHECK(renameat(folder, "f", folder, "g/h") == 0 && faccessat(folder, "g/h", R_OK, 0) == 0);
	CHECK(symlinkat("g/h", folder, "l") == 0 && readlinkat(folder, "l", path, sizeof path) == 3);
	CHECK(linkat(folder, "g/h", AT_FDCWD, "x", 0) == 0 && has("x", "1234"));
	CHECK(unlinkat(folder, "l", 0) == 0 && unlinkat(folder, "g/h", 0) == 0 && unlinkat(folder, "g", AT_REMOVEDIR) == 0);
	CHECK(getcwd(path, sizeof path) && fchdir(folder) == 0 && has("../x", "1234") && chdir(path) == 0);
	CHECK(close(folder) == 0 && rmdir("d") == 0 && unlink("x") == 0);
	CHECK(open("x", O_RDONLY | O_DIRECTORY) == -1 && errno == ENOENT);
}

static void attributes_are_kept(void)
{
	struct stat status;
	struct statvfs room;
	struct timespec times[] = { { 5, 0 }, { 900000000, 123456789 } };
	mode_t former = umask(027);
	int file = open("a", O_RDWR | O_CREAT, 0666);
	CHECK(umask(former) == 027 && fstat(file, &status) == 0 && (status.st_mode & 07777) == 0640);
	CHECK(chmod("a", 0755) == 0 && stat("a", &status) == 0 && (status.st_mode & 07777) == 0755 && access("a", X_OK) == 0);
	CHECK(fchmod(file, 0600) == 0 && access("a", R_OK | W_OK) == 0 && access("a", X_OK) == -1 && errno == EACCES);
	CHECK(utimensat(AT_FDCWD, "a", times, 0) == 0 && stat("a", &status) == 0);
	CHECK(status.st_mtim.tv_sec == 900000000 && status.st_mtim.tv_nsec == 123456789);
	times[1].tv_nsec = UTIME_OMIT;
	CHECK(futimens(file, times) == 0 && fstat(file, &status) == 0 && status.st_mtim.tv_nsec == 123456789);
	CHECK(futimens(file, NULL) == 0 && fstat(file, &status) == 0 && status.st_mtim.tv_sec > 900000000);
	CHECK(write(file, bytes, 5000) == 5000 && fstat(file, &status) == 0 && status.st_size == 5000 && status.st_blocks >= 10);
	CHECK(statvfs("a", &room) == 0 && room.f_bsize >= 512 && room.f_blocks && room.f_bfree <= room.f_blocks && room.f_namemax == 255);
	CHECK(fstatvfs(file, &room) == 0 && fchown(file, 0, 0) == 0 && close(file) == 0 && unlink("a") == 0);
}

static void files_live_without_names(void)
{
	CHECK(put("a", "still there"));
	int file = open("a", O_RDWR), again = dup(file);
	CHECK(unlink("a") == 0 && close(file) == 0 && pread(again, more, 100, 0) == 11 && !memcmp(more, "still", 5));
	/* A child has it, though its parent closes it at once. */
	int go[2];
	CHECK(pipe(go) == 0);
	pid_t child = fork();
	if (child == 0) {
		close(go[1]);
		int ended = read(go[0], more, 1) == 0;
		_exit(ended && pread(again, more, 100, 0) == 11 && write(again, "S", 1) == 1 && lseek(again, 0, SEEK_CUR) == 1 ? 0 : 1);
	}
	int status;
	CHECK(child > 0 && close(again) == 0 && close(go[0]) == 0 && close(go[1]) == 0);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void children_share_offsets(void)
{
	int file = open("o", O_RDWR | O_CREAT, 0600), status;
	for (int round = 0; round < 40; round++) {
		/* Each generation opens some, too. */
		pid_t child = fork();
		if (child == 0) {
			int own = open("o", O_RDWR);
			pid_t second = fork();
			if (second == 0)
				_exit(write(file, "2", 1) == 1 && open("o", O_RDONLY) >= 0 ? 0 : 1);
			if (waitpid(second, &status, 0) != second || status || lseek(own, 0, SEEK_CUR) != 0)
				_exit(2);
			_exit(write(file, "1", 1) == 1 ? 0 : 3);
		}
		CHECK(waitpid(child, &status, 0) == child && status == 0);
		CHECK(lseek(file, 0, SEEK_CUR) == 2 * round + 2);
	}
	CHECK(pread(file, more, 100, 0) == 80 && !memcmp(more, "2121", 4) && close(file) == 0);
	/* More than a page of offsets has places. */
	for (int round = 0; round < 3000; round++) {
		int some = open("o", O_RDONLY);
		CHECK(some >= 0 && lseek(some, 0, SEEK_CUR) == 0 && read(some, more, 1) == 1 && close(some) == 0);
	}
	CHECK(unlink("o") == 0);
}

static int locks(int file, int what, int kind, off_t from, off_t length)
{
	struct flock lock = { .l_type = kind, .l_whence = SEEK_SET, .l_start = from, .l_len = length };
	return fcntl(file, what, &lock);
}

static void bytes_are_locked(void)
{
	int file = open("k", O_RDWR | O_CREAT, 0600), go[2], status;
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 15, .l_len = 10 };
	CHECK(write(file, bytes, 100) == 100 && pipe(go) == 0);
	CHECK(locks(file, F_SETLK, F_WRLCK, 10, 10) == 0 && locks(file, F_SETLK, F_RDLCK, 30, 0) == 0);
	CHECK(fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK);
	pid_t child = fork();
	if (child == 0) {
		int own = open("k", O_RDWR);
		lock.l_type = F_WRLCK;
		if (fcntl(own, F_GETLK, &lock) || lock.l_type != F_WRLCK || lock.l_start != 10 || lock.l_len != 10 || lock.l_pid != getppid())
			_exit(1);
		if (locks(own, F_SETLK, F_RDLCK, 0, 11) != -1 || (errno != EAGAIN && errno != EACCES))
			_exit(2);
		if (locks(own, F_SETLK, F_WRLCK, 0, 10) || locks(own, F_SETLK, F_RDLCK, 1000, 1) || locks(own, F_SETLK, F_WRLCK, 1000, 1) != -1)
			_exit(3);
		/* Waits for the parent. */
		close(go[0]);
		write(go[1], "g", 1);
		if (locks(own, F_SETLKW, F_WRLCK, 10, 20) || pread(own, more, 1, 0) != 1 || more[0] != 'p')
			_exit(4);
		_exit(0);
	}
	CHECK(read(go[0], more, 1) == 1 && usleep(20000) == 0 && pwrite(file, "p", 1, 0) == 1);
	CHECK(locks(file, F_SETLK, F_UNLCK, 0, 0) == 0);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	/* Those of a process end with it. */
	CHECK(locks(file, F_SETLK, F_WRLCK, 0, 0) == 0 && locks(file, F_SETLK, 7, 0, 0) == -1 && errno == EINVAL);
	int reads = open("k", O_RDONLY);
	CHECK(locks(reads, F_SETLK, F_WRLCK, 0, 0) == -1 && errno == EBADF);
	child = fork();
	if (child == 0) {
		int own = open("k", O_RDWR);
		_exit(locks(own, F_SETLK, F_RDLCK, 99, 1) == -1 ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(close(reads) == 0 && close(file) == 0 && close(go[0]) == 0 && close(go[1]) == 0);
	file = open("k", O_RDWR);
	CHECK(flock(file, LOCK_EX | LOCK_NB) == 0 && flock(file, LOCK_UN) == 0 && close(file) == 0 && unlink("k") == 0);
}

static void files_are_mapped(void)
{
	int file = open("m", O_RDWR | O_CREAT, 0600);
	CHECK(write(file, bytes, 10000) == 10000);
	char *at = mmap(NULL, 10000, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	CHECK(at != MAP_FAILED && !memcmp(at, bytes, 10000) && at[10001] == 0);
	at[0] = 'x';
	CHECK(pread(file, more, 1, 0) == 1 && more[0] == bytes[0] && munmap(at, 10000) == 0);
	at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 4096);
	CHECK(at != MAP_FAILED && !memcmp(at, bytes + 4096, 4096) && munmap(at, 4096) == 0);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 5) == MAP_FAILED && errno == EINVAL);
#ifdef __exos__
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED && errno == ENODEV);
#endif
	CHECK(close(file) == 0);
	file = open("m", O_WRONLY);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED && errno == EACCES);
	CHECK(close(file) == 0 && unlink("m") == 0);
}

int main(int count, char **words)
{
	const char *where = count > 1 ? words[1] : "/served";
#ifdef __exos__
	pid_t child = count > 2 ? 0 : server(where, 4096);
	if (child < 0)
		return perror(where), 2;
#endif
	if (chdir(where))
		return perror(where), 2;
	RUN(bytes_stand_at_offsets);
	RUN(pieces_are_one);
	RUN(flags_are_kept);
	RUN(names_are_moved);
	RUN(links_lead_on);
	RUN(folders_are_listed);
	RUN(names_stand_beside_folders);
	RUN(attributes_are_kept);
	RUN(files_live_without_names);
	RUN(children_share_offsets);
	RUN(bytes_are_locked);
	RUN(files_are_mapped);
#ifdef __exos__
	if (child)
		server_ends(child);
#endif
	return failures ? 1 : 0;
}
