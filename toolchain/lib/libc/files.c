/* Files: newlib's own entry points (`_read_r` and its kind) and the functions of POSIX, on the
 * service `sys`. */
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "call.h"

#define REENT(number, a, b, c) answer(reent, sys(SYS_##number, (long)(a), (long)(b), (long)(c), 0, 0))

_ssize_t _read_r(struct _reent *reent, int fd, void *to, size_t n) { return REENT(read, fd, to, n); }
_ssize_t _write_r(struct _reent *reent, int fd, const void *from, size_t n) { return REENT(write, fd, from, n); }
int _close_r(struct _reent *reent, int fd) { return (int)REENT(close, fd, 0, 0); }
_off_t _lseek_r(struct _reent *reent, int fd, _off_t at, int whence) { return REENT(lseek, fd, at, whence); }
int _fstat_r(struct _reent *reent, int fd, struct stat *out) { return (int)REENT(fstat, fd, out, 0); }
int _stat_r(struct _reent *reent, const char *path, struct stat *out) { return (int)REENT(stat, path, out, 0); }
int _unlink_r(struct _reent *reent, const char *path) { return (int)REENT(unlink, path, 0, 0); }
int _link_r(struct _reent *reent, const char *from, const char *to) { return (int)REENT(link, from, to, 0); }
int _rename_r(struct _reent *reent, const char *from, const char *to) { return (int)REENT(rename, from, to, 0); }
int _mkdir_r(struct _reent *reent, const char *path, int mode) { return (int)REENT(mkdir, path, mode, 0); }
int _fcntl_r(struct _reent *reent, int fd, int command, int value) { return (int)REENT(fcntl, fd, command, value); }

int _open_r(struct _reent *reent, const char *path, int flags, int mode)
{
    return (int)answer(reent, sys(SYS_openat, AT_FDCWD, (long)path, flags, mode, 0));
}

/* A terminal answers to TCGETS; what it says is of no interest. */
int _isatty_r(struct _reent *reent, int fd)
{
    char termios[64];
    return REENT(ioctl, fd, 0x5401, termios) == 0;
}
int isatty(int fd) { return _isatty_r(_REENT, fd); }

_ssize_t read(int fd, void *to, size_t n) { return CALL3(read, fd, to, n); }
_ssize_t write(int fd, const void *from, size_t n) { return CALL3(write, fd, from, n); }
int close(int fd) { return (int)CALL1(close, fd); }
off_t lseek(int fd, off_t at, int whence) { return CALL3(lseek, fd, at, whence); }
_ssize_t pread(int fd, void *to, size_t n, off_t at) { return CALL4(pread64, fd, to, n, at); }
_ssize_t pwrite(int fd, const void *from, size_t n, off_t at) { return CALL4(pwrite64, fd, from, n, at); }

static mode_t mode_of(int flags, va_list rest)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}
int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return (int)CALL4(openat, AT_FDCWD, path, flags, mode);
}
int openat(int at, const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return (int)CALL4(openat, at, path, flags, mode);
}
int creat(const char *path, mode_t mode) { return open(path, O_WRONLY | O_CREAT | O_TRUNC, mode); }
int fcntl(int fd, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    long value = va_arg(rest, long);
    va_end(rest);
    return (int)CALL3(fcntl, fd, command, value);
}
int flock(int fd, int how) { return (int)CALL2(flock, fd, how); }
int posix_fadvise(int fd, off_t from, off_t n, int how) { return (void)fd, (void)from, (void)n, (void)how, 0; }

int stat(const char *restrict path, struct stat *restrict out) { return (int)CALL2(stat, path, out); }
int lstat(const char *restrict path, struct stat *restrict out) { return (int)CALL2(lstat, path, out); }
int fstat(int fd, struct stat *out) { return (int)CALL2(fstat, fd, out); }
int fstatat(int at, const char *restrict path, struct stat *restrict out, int flags)
{
    return (int)CALL4(newfstatat, at, path, out, flags);
}
int access(const char *path, int mode) { return (int)CALL2(access, path, mode); }
int faccessat(int at, const char *path, int mode, int flags) { return (int)CALL4(faccessat, at, path, mode, flags); }
int chmod(const char *path, mode_t mode) { return (int)CALL2(chmod, path, mode); }
int fchmod(int fd, mode_t mode) { return (int)CALL2(fchmod, fd, mode); }
int chown(const char *path, uid_t user, gid_t group) { return (int)CALL3(chown, path, user, group); }
int fchown(int fd, uid_t user, gid_t group) { return (int)CALL3(fchown, fd, user, group); }
mode_t umask(mode_t mask) { return (mode_t)CALL1(umask, mask); }
int utimensat(int at, const char *path, const struct timespec *times, int flags)
{
    return (int)CALL4(utimensat, at, path, times, flags);
}
int futimens(int fd, const struct timespec *times) { return (int)CALL4(utimensat, fd, 0, times, 0); }

int link(const char *from, const char *to) { return (int)CALL2(link, from, to); }
int symlink(const char *from, const char *to) { return (int)CALL2(symlink, from, to); }
_ssize_t readlink(const char *restrict path, char *restrict to, size_t n) { return CALL3(readlink, path, to, n); }
int unlink(const char *path) { return (int)CALL1(unlink, path); }
int unlinkat(int at, const char *path, int flags) { return (int)CALL3(unlinkat, at, path, flags); }
int mkdir(const char *path, mode_t mode) { return (int)CALL2(mkdir, path, mode); }
int mkdirat(int at, const char *path, mode_t mode) { return (int)CALL3(mkdirat, at, path, mode); }
int rmdir(const char *path) { return (int)CALL1(rmdir, path); }
int renameat(int from_at, const char *from, int to_at, const char *to) { return (int)CALL4(renameat, from_at, from, to_at, to); }

/* newlib's remove only unlinks; a folder is removed, too. */
int _remove_r(struct _reent *reent, const char *path)
{
    long result = sys(SYS_unlink, (long)path, 0, 0, 0, 0);
    if (result == -EISDIR || result == -EPERM) {
        long folder = sys(SYS_rmdir, (long)path, 0, 0, 0, 0);
        result = folder == -ENOTDIR ? result : folder;
    }
    return (int)answer(reent, result);
}
int remove(const char *path) { return _remove_r(_REENT, path); }

int ftruncate(int fd, off_t n) { return (int)CALL2(ftruncate, fd, n); }
int truncate(const char *path, off_t n) { return (int)CALL2(truncate, path, n); }
int fsync(int fd) { return (int)CALL1(fsync, fd); }
int fdatasync(int fd) { return (int)CALL1(fdatasync, fd); }
int dup(int fd) { return (int)CALL1(dup, fd); }
int dup2(int fd, int to) { return (int)CALL2(dup2, fd, to); }
int pipe(int ends[2]) { return (int)CALL1(pipe, ends); }

char *getcwd(char *to, size_t n)
{
    char *own = 0;
    if (!to && !(to = own = malloc(n = n ? n : PATH_MAX)))
        return 0;
    if (CALL2(getcwd, to, n) < 0) {
        free(own);
        return 0;
    }
    return to;
}
int chdir(const char *path) { return (int)CALL1(chdir, path); }
int fchdir(int fd) { return (int)CALL1(fchdir, fd); }

/* A file without a name, or one whose name is gone at once. */
FILE *_tmpfile_r(struct _reent *reent)
{
    char path[] = "/tmp/postern-XXXXXX";
    int fd = (int)sys(SYS_openat, AT_FDCWD, (long)"/tmp", O_TMPFILE | O_RDWR | O_EXCL, 0600, 0);
    if (fd < 0) {
        fd = mkstemp(path);
        if (fd < 0)
            return 0;
        unlink(path);
    }
    FILE *file = fdopen(fd, "w+b");
    if (!file)
        close(fd);
    return file;
}
FILE *tmpfile(void) { return _tmpfile_r(_REENT); }
