/* Names with 64: offsets in files have 64 bits under every name. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAME(type, name, parameters, values) \
    type name##64 parameters __attribute__((weak)); \
    type name##64 parameters { return name values; }

#undef fseeko64
#undef ftello64
#undef fopen64
#undef freopen64
#undef tmpfile64
#undef lseek64
#undef stat64
#undef fstat64
#undef lstat64
#undef ftruncate64
#undef truncate64
#undef pread64
#undef pwrite64
#undef mmap64
#undef open64
#undef mkstemp64
SAME(int, fseeko, (FILE *file, off_t at, int whence), (file, at, whence))
SAME(off_t, ftello, (FILE *file), (file))
SAME(FILE *, fopen, (const char *path, const char *mode), (path, mode))
SAME(FILE *, freopen, (const char *path, const char *mode, FILE *file), (path, mode, file))
SAME(FILE *, tmpfile, (void), ())
SAME(off_t, lseek, (int fd, off_t at, int whence), (fd, at, whence))
SAME(int, stat, (const char *path, struct stat *out), (path, out))
SAME(int, lstat, (const char *path, struct stat *out), (path, out))
SAME(int, fstat, (int fd, struct stat *out), (fd, out))
SAME(int, ftruncate, (int fd, off_t n), (fd, n))
SAME(int, truncate, (const char *path, off_t n), (path, n))
SAME(ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
SAME(ssize_t, pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at))
SAME(void *, mmap, (void *wish, size_t n, int protection, int flags, int fd, off_t at), (wish, n, protection, flags, fd, at))
SAME(int, open, (const char *path, int flags, mode_t mode), (path, flags, mode))
SAME(int, mkstemp, (char *path), (path))
