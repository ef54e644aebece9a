/* The process that a program believes in: there is one, it is the call of the host, and other
 * processes are not reached. */
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <postern/extension.h>

#include "call.h"

/* Ends the call. The host sees the status. */
void _exit(int status)
{
    for (;;)
        sys(SYS_exit_group, status & 0xff, 0, 0, 0, 0);
}

int _getpid_r(struct _reent *reent) { return (void)reent, 1; }
pid_t getpid(void) { return 1; }
pid_t getppid(void) { return 0; }
uid_t getuid(void) { return 0; }
uid_t geteuid(void) { return 0; }
gid_t getgid(void) { return 0; }
gid_t getegid(void) { return 0; }
int issetugid(void) { return 0; }
int getpagesize(void) { return 4096; }

/* A signal that has no handler: what ends a process ends the call, as a fault. */
int _kill_r(struct _reent *reent, int process, int signal)
{
    if (process != 1 && process != 0 && process != -1) {
        reent->_errno = ESRCH;
        return -1;
    }
    switch (signal) {
    case 0:
    case SIGCHLD:
    case SIGCONT:
    case SIGURG:
    case SIGWINCH:
        return 0;
    case SIGABRT:
        __postern_abort("abort() was called");
    }
    char text[64];
    sniprintf(text, sizeof text, "ended by signal %d (%s)", signal, strsignal(signal));
    __postern_abort(text);
}
int kill(pid_t process, int signal) { return _kill_r(_REENT, process, signal); }

/* There is no command processor. */
int system(const char *command)
{
    if (!command)
        return 0;
    errno = ENOSYS;
    return -1;
}

long sysconf(int name)
{
    switch (name) {
    case _SC_PAGESIZE:
        return 4096;
    case _SC_CLK_TCK:
        return 100;
    case _SC_NPROCESSORS_ONLN:
    case _SC_NPROCESSORS_CONF:
        return 1;
    case _SC_OPEN_MAX:
        return 256;
    case _SC_ARG_MAX:
        return 131072;
    case _SC_IOV_MAX:
        return 1024;
    case _SC_HOST_NAME_MAX:
        return 64;
    case _SC_NGROUPS_MAX:
        return 0;
    case _SC_MONOTONIC_CLOCK:
        return 200112;
    case _SC_PHYS_PAGES:
        return (*(const volatile unsigned *)0x10014 - *(const volatile unsigned *)0x10010) / 4096;
    default:
        errno = EINVAL;
        return -1;
    }
}

int getentropy(void *to, size_t n)
{
    if (n > 256) {
        errno = EIO;
        return -1;
    }
    return CALL3(getrandom, to, n, 0) == (long)n ? 0 : -1;
}

/* Signals come from the program itself only: what it blocks is of no consequence. */
int sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
    (void)how, (void)set;
    if (before)
        memset(before, 0, sizeof *before);
    return 0;
}
int sigaction(int signal_number, const struct sigaction *action, struct sigaction *before)
{
    _sig_func_ptr old = signal(signal_number, action ? action->sa_handler : SIG_DFL);
    if (old == SIG_ERR)
        return -1;
    if (!action)
        signal(signal_number, old);
    if (before) {
        memset(before, 0, sizeof *before);
        before->sa_handler = old;
    }
    return 0;
}

/* Users are not known. */
struct passwd *getpwnam(const char *name) { return (void)name, (struct passwd *)0; }
struct passwd *getpwuid(uid_t user) { return (void)user, (struct passwd *)0; }
char *getlogin(void) { return 0; }
