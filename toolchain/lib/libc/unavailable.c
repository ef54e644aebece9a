/* What programs expect to link and what cannot be here: processes, sockets, timers, users,
 * libraries that are loaded. Each function fails as on a system that does not have it, mostly with
 * ENOSYS.
 *
 * The toolchain reads this file, too: for each line that begins with one of the macros it defines
 * __stub_NAME in <limits.h>, by which configure scripts and meson know such functions, and report
 * them as missing. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <poll.h>
#include <pwd.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#undef ENOSYS
#define ENOSYS(type, name, parameters) \
    type name parameters \
    { \
        errno = 38; \
        return (type)-1; \
    }
#define NOTHING(type, name, parameters) \
    type name parameters \
    { \
        errno = 38; \
        return (type)0; \
    }
/* Those that return the error's number. */
#define NUMBER(type, name, parameters) \
    type name parameters { return 38; }

/* Processes. */
ENOSYS(pid_t, fork, (void))
ENOSYS(pid_t, vfork, (void))
ENOSYS(int, execl, (const char *path, const char *first, ...))
ENOSYS(int, execle, (const char *path, const char *first, ...))
ENOSYS(int, execlp, (const char *path, const char *first, ...))
ENOSYS(int, execv, (const char *path, char *const arguments[]))
ENOSYS(int, execve, (const char *path, char *const arguments[], char *const environment[]))
ENOSYS(int, execvp, (const char *path, char *const arguments[]))
ENOSYS(int, execvpe, (const char *path, char *const arguments[], char *const environment[]))
ENOSYS(int, fexecve, (int fd, char *const arguments[], char *const environment[]))
ENOSYS(pid_t, wait, (int *status))
ENOSYS(pid_t, waitpid, (pid_t process, int *status, int options))
ENOSYS(pid_t, wait3, (int *status, int options, struct rusage *usage))
ENOSYS(pid_t, wait4, (pid_t process, int *status, int options, struct rusage *usage))
NOTHING(FILE *, popen, (const char *command, const char *mode))
ENOSYS(int, pclose, (FILE *stream))
ENOSYS(int, daemon, (int stay, int keep))
ENOSYS(int, killpg, (pid_t group, int signal))
ENOSYS(int, setpgid, (pid_t process, pid_t group))
ENOSYS(int, setpgrp, (void))
ENOSYS(pid_t, getpgid, (pid_t process))
ENOSYS(pid_t, getsid, (pid_t process))
ENOSYS(pid_t, setsid, (void))
ENOSYS(pid_t, tcgetpgrp, (int fd))
ENOSYS(int, tcsetpgrp, (int fd, pid_t group))
ENOSYS(int, nice, (int more))
ENOSYS(int, setpriority, (int which, id_t who, int value))
ENOSYS(int, chroot, (const char *path))
ENOSYS(int, sethostname, (const char *name, size_t n))

/* Users. */
ENOSYS(int, setuid, (uid_t user))
ENOSYS(int, seteuid, (uid_t user))
ENOSYS(int, setreuid, (uid_t user, uid_t effective))
ENOSYS(int, setgid, (gid_t group))
ENOSYS(int, setegid, (gid_t group))
ENOSYS(int, setregid, (gid_t group, gid_t effective))
ENOSYS(int, setgroups, (int n, const gid_t *groups))
ENOSYS(int, initgroups, (const char *name, gid_t group))
NOTHING(char *, getpass, (const char *prompt))
NOTHING(char *, crypt, (const char *key, const char *salt))

/* Signals that come later, and timers. */
ENOSYS(int, pause, (void))
ENOSYS(int, sigsuspend, (const sigset_t *set))
ENOSYS(int, sigpending, (sigset_t *set))
ENOSYS(int, sigaltstack, (const stack_t *restrict stack, stack_t *restrict before))
ENOSYS(int, sigwaitinfo, (const sigset_t *set, siginfo_t *information))
ENOSYS(int, sigtimedwait, (const sigset_t *set, siginfo_t *information, const struct timespec *time))
ENOSYS(int, sigqueue, (pid_t process, int signal, const union sigval value))
NOTHING(unsigned, alarm, (unsigned seconds))
ENOSYS(useconds_t, ualarm, (useconds_t time, useconds_t again))
ENOSYS(int, getitimer, (int which, struct itimerval *value))
ENOSYS(int, setitimer, (int which, const struct itimerval *restrict value, struct itimerval *restrict before))
ENOSYS(int, timer_create, (clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer))
ENOSYS(int, timer_delete, (timer_t timer))
ENOSYS(int, timer_settime, (timer_t timer, int flags, const struct itimerspec *restrict value, struct itimerspec *restrict before))
ENOSYS(int, timer_gettime, (timer_t timer, struct itimerspec *value))
ENOSYS(int, timer_getoverrun, (timer_t timer))
ENOSYS(int, clock_settime, (clockid_t clock, const struct timespec *time))
ENOSYS(int, settimeofday, (const struct timeval *time, const struct timezone *zone))

/* Sockets and names of hosts. */
ENOSYS(int, socket, (int domain, int type, int protocol))
ENOSYS(int, socketpair, (int domain, int type, int protocol, int ends[2]))
ENOSYS(int, bind, (int fd, const struct sockaddr *address, socklen_t n))
ENOSYS(int, connect, (int fd, const struct sockaddr *address, socklen_t n))
ENOSYS(int, listen, (int fd, int backlog))
ENOSYS(int, accept, (int fd, struct sockaddr *restrict address, socklen_t *restrict n))
ENOSYS(int, accept4, (int fd, struct sockaddr *restrict address, socklen_t *restrict n, int flags))
ENOSYS(int, getsockname, (int fd, struct sockaddr *restrict address, socklen_t *restrict n))
ENOSYS(int, getpeername, (int fd, struct sockaddr *restrict address, socklen_t *restrict n))
ENOSYS(int, getsockopt, (int fd, int level, int name, void *restrict value, socklen_t *restrict n))
ENOSYS(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t n))
ENOSYS(int, shutdown, (int fd, int how))
ENOSYS(ssize_t, send, (int fd, const void *from, size_t n, int flags))
ENOSYS(ssize_t, sendto, (int fd, const void *from, size_t n, int flags, const struct sockaddr *address, socklen_t length))
ENOSYS(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags))
ENOSYS(ssize_t, recv, (int fd, void *to, size_t n, int flags))
ENOSYS(ssize_t, recvfrom, (int fd, void *restrict to, size_t n, int flags, struct sockaddr *restrict address, socklen_t *restrict length))
ENOSYS(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags))
NOTHING(struct hostent *, gethostbyname, (const char *name))
NOTHING(struct hostent *, gethostbyaddr, (const void *address, socklen_t n, int type))
NOTHING(struct servent *, getservbyname, (const char *name, const char *protocol))
NOTHING(struct servent *, getservbyport, (int port, const char *protocol))
NOTHING(struct protoent *, getprotobyname, (const char *name))

/* Files of other kinds, and what file systems say of themselves. */
ENOSYS(int, mkfifo, (const char *path, mode_t mode))
ENOSYS(int, mknod, (const char *path, mode_t mode, dev_t device))
ENOSYS(int, statvfs, (const char *restrict path, struct statvfs *restrict out))
ENOSYS(int, fstatvfs, (int fd, struct statvfs *out))
NUMBER(int, posix_fallocate, (int fd, off_t at, off_t n))
ENOSYS(int, pipe2, (int ends[2], int flags))
ENOSYS(int, shm_open, (const char *name, int flags, mode_t mode))
ENOSYS(int, shm_unlink, (const char *name))
ENOSYS(int, sem_close, (sem_t *semaphore))
ENOSYS(int, sem_unlink, (const char *name))
NOTHING(sem_t *, sem_open, (const char *name, int flags, ...))
ENOSYS(int, mlock, (const void *address, size_t n))
ENOSYS(int, munlock, (const void *address, size_t n))
ENOSYS(int, mlockall, (int flags))
ENOSYS(int, munlockall, (void))

/* Terminals are as they are. */
ENOSYS(int, tcsetattr, (int fd, int when, const struct termios *settings))
ENOSYS(int, tcsendbreak, (int fd, int duration))
ENOSYS(int, tcdrain, (int fd))
ENOSYS(int, tcflush, (int fd, int which))
ENOSYS(int, tcflow, (int fd, int action))

/* Libraries that are loaded. */
NOTHING(void *, dlopen, (const char *path, int flags))
NOTHING(void *, dlsym, (void *restrict library, const char *restrict name))
NOTHING(int, dladdr, (const void *address, Dl_info *out))
ENOSYS(int, dlclose, (void *library))
char *dlerror(void) { return (char *)"libraries cannot be loaded here"; }
