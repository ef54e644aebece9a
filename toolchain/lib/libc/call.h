/* The service `sys`: Linux's calls by their numbers, pointers as window offsets. What a call does
 * is for the domain's policy to say; the result is a value or a negated error number, and newlib's
 * numbers are Linux's here. */
#ifndef POSTERN_CALL_H
#define POSTERN_CALL_H
#include <errno.h>
#include <reent.h>

__attribute__((visibility("default"))) extern long sys(long number, long a, long b, long c, long d, long e);

enum {
    SYS_read = 0, SYS_write = 1, SYS_close = 3, SYS_stat = 4, SYS_fstat = 5, SYS_lstat = 6, SYS_lseek = 8, SYS_ioctl = 16,
    SYS_pread64 = 17, SYS_pwrite64 = 18, SYS_readv = 19, SYS_writev = 20, SYS_access = 21, SYS_pipe = 22, SYS_sched_yield = 24, SYS_dup = 32, SYS_dup2 = 33, SYS_nanosleep = 35,
    SYS_getpid = 39, SYS_uname = 63, SYS_fcntl = 72, SYS_flock = 73, SYS_fsync = 74, SYS_fdatasync = 75, SYS_truncate = 76,
    SYS_ftruncate = 77, SYS_getcwd = 79, SYS_chdir = 80, SYS_fchdir = 81, SYS_rename = 82, SYS_mkdir = 83, SYS_rmdir = 84,
    SYS_link = 86, SYS_unlink = 87, SYS_symlink = 88, SYS_readlink = 89, SYS_chmod = 90, SYS_fchmod = 91, SYS_chown = 92,
    SYS_fchown = 93, SYS_umask = 95, SYS_gettimeofday = 96, SYS_getrusage = 98, SYS_times = 100, SYS_getuid = 102, SYS_getgid = 104,
    SYS_geteuid = 107, SYS_getegid = 108, SYS_getppid = 110, SYS_getdents64 = 217, SYS_clock_gettime = 228,
    SYS_clock_getres = 229, SYS_clock_nanosleep = 230, SYS_exit_group = 231, SYS_openat = 257, SYS_mkdirat = 258, SYS_newfstatat = 262, SYS_unlinkat = 263,
    SYS_renameat = 264, SYS_linkat = 265, SYS_symlinkat = 266, SYS_readlinkat = 267, SYS_fchmodat = 268, SYS_faccessat = 269, SYS_utimensat = 280, SYS_dup3 = 292, SYS_getrandom = 318,
};

/* The value, or -1 with the error in the thread's structure. */
static inline long answer(struct _reent *reent, long result)
{
    if (result < 0 && result >= -4095) {
        reent->_errno = (int)-result;
        return -1;
    }
    return result;
}

#define CALL5(number, a, b, c, d, e) answer(_REENT, sys(SYS_##number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e)))
#define CALL4(number, a, b, c, d) CALL5(number, a, b, c, d, 0)
#define CALL3(number, a, b, c) CALL5(number, a, b, c, 0, 0)
#define CALL2(number, a, b) CALL5(number, a, b, 0, 0, 0)
#define CALL1(number, a) CALL5(number, a, 0, 0, 0, 0)
#define CALL0(number) CALL5(number, 0, 0, 0, 0, 0)

#endif
