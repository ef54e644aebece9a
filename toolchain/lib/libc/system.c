/* The system that a program believes in: its names, limits and clocks, which descriptors are ready,
 * what a terminal is set to. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include "call.h"
#include "thread.h"

int uname(struct utsname *out) { return (int)CALL1(uname, out); }
int gethostname(char *to, size_t n)
{
    struct utsname names;
    if (uname(&names))
        return -1;
    if (strlen(names.nodename) >= n) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(to, names.nodename);
    return 0;
}

int getrlimit(int what, struct rlimit *out)
{
    rlim_t limit = RLIM_INFINITY;
    if (what == RLIMIT_STACK)
        limit = (unsigned long)__postern_stack_mask + 1;
    else if (what == RLIMIT_NOFILE)
        limit = 256;
    else if (what == RLIMIT_DATA || what == RLIMIT_AS)
        limit = *(const volatile uint32_t *)0x10014 - *(const volatile uint32_t *)0x10010;
    *out = (struct rlimit){ limit, limit };
    return 0;
}
/* What a program takes from itself it need not be refused; it gets no more than it has. */
int setrlimit(int what, const struct rlimit *wanted)
{
    struct rlimit have;
    getrlimit(what, &have);
    if (wanted->rlim_cur <= have.rlim_cur)
        return 0;
    errno = EPERM;
    return -1;
}
int getpriority(int which, id_t who) { return 0; }
int getdtablesize(void) { return 256; }
int getgroups(int n, gid_t *groups) { return 0; }
pid_t getpgrp(void) { return 1; }
long gethostid(void) { return 0; }
void sync(void) {}
size_t confstr(int name, char *to, size_t n) { return errno = EINVAL, 0; }
long pathconf(const char *path, int name)
{
    switch (name) {
    case _PC_NAME_MAX:
        return 255;
    case _PC_PATH_MAX:
        return PATH_MAX;
    case _PC_LINK_MAX:
        return 127;
    case _PC_PIPE_BUF:
        return 4096;
    default:
        return -1;
    }
}
long fpathconf(int fd, int name) { return pathconf("", name); }
long syscall(long number, ...)
{
    long a[5];
    va_list rest;
    va_start(rest, number);
    for (int k = 0; k < 5; k++)
        a[k] = va_arg(rest, long);
    va_end(rest);
    return answer(_REENT, sys(number, a[0], a[1], a[2], a[3], a[4]));
}
char *secure_getenv(const char *name) { return getenv(name); }

/* Nobody is known by name. */
int getpwnam_r(const char *name, struct passwd *p, char *to, size_t n, struct passwd **out) { return *out = 0, 0; }
int getpwuid_r(uid_t user, struct passwd *p, char *to, size_t n, struct passwd **out) { return *out = 0, 0; }
struct group *getgrnam(const char *name) { return 0; }
struct group *getgrgid(gid_t group) { return 0; }
int getgrnam_r(const char *name, struct group *g, char *to, size_t n, struct group **out) { return *out = 0, 0; }
int getgrgid_r(gid_t group, struct group *g, char *to, size_t n, struct group **out) { return *out = 0, 0; }

/* Files. */
ssize_t readv(int fd, const struct iovec *parts, int n) { return CALL3(readv, fd, parts, n); }
ssize_t writev(int fd, const struct iovec *parts, int n) { return CALL3(writev, fd, parts, n); }
int dup3(int fd, int to, int flags) { return (int)CALL3(dup3, fd, to, flags); }
int linkat(int from_at, const char *from, int at, const char *to, int flags) { return (int)CALL5(linkat, from_at, from, at, to, flags); }
int symlinkat(const char *text, int at, const char *path) { return (int)CALL3(symlinkat, text, at, path); }
ssize_t readlinkat(int at, const char *restrict path, char *restrict to, size_t n) { return CALL4(readlinkat, at, path, to, n); }
int fchmodat(int at, const char *path, mode_t mode, int flags) { return (int)CALL3(fchmodat, at, path, mode); }
int lchown(const char *path, uid_t user, gid_t group) { return chown(path, user, group); }
int utime(const char *path, const struct utimbuf *times)
{
    if (!times)
        return utimensat(AT_FDCWD, path, 0, 0);
    struct timespec both[2] = { { times->actime, 0 }, { times->modtime, 0 } };
    return utimensat(AT_FDCWD, path, both, 0);
}
int utimes(const char *path, const struct timeval times[2])
{
    if (!times)
        return utimensat(AT_FDCWD, path, 0, 0);
    struct timespec both[2] = { { times[0].tv_sec, times[0].tv_usec * 1000 }, { times[1].tv_sec, times[1].tv_usec * 1000 } };
    return utimensat(AT_FDCWD, path, both, 0);
}

/* The real path: links are followed from the left, each part once it is read. */
char *realpath(const char *restrict path, char *restrict to)
{
    char done[PATH_MAX], left[PATH_MAX], text[PATH_MAX], *own = 0;
    size_t n = 0;
    int links = 0;
    struct stat status;
    if (!*path)
        return errno = ENOENT, (char *)0;
    if (strlen(path) >= PATH_MAX)
        return errno = ENAMETOOLONG, (char *)0;
    strcpy(left, path);
    done[0] = 0;
    if (*path != '/') {
        if (!getcwd(done, sizeof done))
            return 0;
        n = strlen(done);
        if (n == 1)
            done[n = 0] = 0;
    }
    while (*left) {
        size_t skip = strspn(left, "/"), part = strcspn(left + skip, "/");
        size_t before = n;
        if (part == 2 && !memcmp(left + skip, "..", 2)) {
            while (n && done[--n] != '/')
                ;
        } else if (part && !(part == 1 && left[skip] == '.')) {
            if (n + part + 2 > sizeof done)
                return errno = ENAMETOOLONG, (char *)0;
            done[n++] = '/';
            memcpy(done + n, left + skip, part);
            n += part;
        }
        done[n] = 0;
        memmove(left, left + skip + part, strlen(left + skip + part) + 1);
        if (n <= before)
            continue;
        if (lstat(done, &status))
            return 0;
        if (!S_ISLNK(status.st_mode))
            continue;
        ssize_t length = readlink(done, text, sizeof text - 1);
        if (length < 0)
            return 0;
        if (++links > 40 || (size_t)length + strlen(left) + 1 >= sizeof left)
            return errno = links > 40 ? ELOOP : ENAMETOOLONG, (char *)0;
        memmove(left + length + 1, left, strlen(left) + 1);
        memcpy(left, text, (size_t)length);
        left[length] = '/';
        n = text[0] == '/' ? 0 : before;
        done[n] = 0;
    }
    if (!n)
        strcpy(done, "/");
    if (!to && !(to = own = malloc(PATH_MAX)))
        return 0;
    return strcpy(to, done);
}

/* What is open is ready: no call of an extension's own comes later than another. */
static int is_open(int fd) { return sys(SYS_fcntl, fd, F_GETFD, 0, 0, 0) >= 0; }
int poll(struct pollfd *files, nfds_t n, int timeout)
{
    int ready = 0;
    for (nfds_t k = 0; k < n; k++) {
        if (files[k].fd < 0)
            files[k].revents = 0;
        else if (is_open(files[k].fd))
            files[k].revents = files[k].events & (POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM);
        else
            files[k].revents = POLLNVAL;
        ready += files[k].revents != 0;
    }
    if (!ready && timeout > 0)
        usleep((useconds_t)timeout * 1000);
    return ready;
}
int ppoll(struct pollfd *files, nfds_t n, const struct timespec *time, const sigset_t *set)
{
    return poll(files, n, time ? (int)(time->tv_sec * 1000 + time->tv_nsec / 1000000) : -1);
}
int select(int n, fd_set *in, fd_set *out, fd_set *errors, struct timeval *time)
{
    int ready = 0;
    for (int fd = 0; fd < n && fd < FD_SETSIZE; fd++) {
        int asked = (in && FD_ISSET(fd, in)) + (out && FD_ISSET(fd, out));
        if (asked && !is_open(fd))
            return errno = EBADF, -1;
        ready += asked;
    }
    if (errors)
        FD_ZERO(errors);
    if (!ready && time)
        usleep((useconds_t)(time->tv_sec * 1000000 + time->tv_usec));
    return ready;
}
int pselect(int n, fd_set *in, fd_set *out, fd_set *errors, const struct timespec *time, const sigset_t *set)
{
    struct timeval wait = { time ? time->tv_sec : 0, time ? time->tv_nsec / 1000 : 0 };
    return select(n, in, out, errors, time ? &wait : 0);
}

/* Terminals. */
int ioctl(int fd, unsigned long request, ...)
{
    va_list rest;
    va_start(rest, request);
    void *to = va_arg(rest, void *);
    va_end(rest);
    return (int)CALL3(ioctl, fd, request, to);
}
int tcgetattr(int fd, struct termios *out)
{
    /* What the call writes is shorter than the structure. */
    memset(out, 0, sizeof *out);
    return ioctl(fd, TCGETS, out);
}
speed_t cfgetispeed(const struct termios *t) { return t->c_ispeed; }
speed_t cfgetospeed(const struct termios *t) { return t->c_ospeed; }
int cfsetispeed(struct termios *t, speed_t speed) { return t->c_ispeed = speed, 0; }
int cfsetospeed(struct termios *t, speed_t speed) { return t->c_ospeed = speed, 0; }
void cfmakeraw(struct termios *t)
{
    t->c_iflag &= ~(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | ICRNL | IXON);
    t->c_oflag &= ~OPOST;
    t->c_lflag &= ~(ECHO | ECHONL | ICANON | ISIG | IEXTEN);
    t->c_cflag = (t->c_cflag & ~(CSIZE | PARENB)) | CS8;
    t->c_cc[VMIN] = 1;
    t->c_cc[VTIME] = 0;
}

/* Time and chance. */
ssize_t getrandom(void *to, size_t n, unsigned flags) { return CALL3(getrandom, to, n, flags); }
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    struct timespec now, wait = *time;
    if (flags & TIMER_ABSTIME) {
        if (clock_gettime(clock, &now))
            return errno;
        wait.tv_sec -= now.tv_sec;
        wait.tv_nsec -= now.tv_nsec;
        if (wait.tv_nsec < 0) {
            wait.tv_nsec += 1000000000;
            wait.tv_sec--;
        }
        if (wait.tv_sec < 0)
            return 0;
    }
    return nanosleep(&wait, left) ? errno : 0;
}
