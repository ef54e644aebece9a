/* What std, which was compiled for glibc, finds in place of functions whose numbers or layouts are
 * others in the C library of extensions, or which have nothing to do here. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PT(name) __postern_glibc_##name

static int no(int error)
{
    errno = error;
    return -1;
}

const char *PT(gnu_get_libc_version)(void) { return "2.36"; }
int *PT(__errno_location)(void) { return &errno; }

/* Clocks by their numbers in Linux. */
static clockid_t clock_of(int number) { return number == 0 || number == 5 ? CLOCK_REALTIME : CLOCK_MONOTONIC; }
int PT(clock_gettime)(int number, struct timespec *out)
{
    return number == 2 || number == 3 ? no(EINVAL) : clock_gettime(clock_of(number), out);
}
int PT(nanosleep)(const struct timespec *time, struct timespec *left) { return nanosleep(time, left); }
int PT(clock_nanosleep)(int number, int flags, const struct timespec *time, struct timespec *left)
{
    struct timespec wait = *time, now;
    if (flags & 1) {
        if (clock_gettime(clock_of(number), &now))
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

/* Numbers of glibc: the size of a page, processors. */
long PT(sysconf)(int name)
{
    switch (name) {
    case 30:
        return 4096;
    case 83:
    case 84:
        return 1;
    default:
        return no(EINVAL);
    }
}
int PT(sched_getaffinity)(int process, size_t n, unsigned char *set)
{
    memset(set, 0, n);
    if (n)
        set[0] = 1;
    return 0;
}

/* Where code and data lie is asked for backtraces with names; the vector of the kernel's is not there. */
int PT(dl_iterate_phdr)(void *see, void *value) { return 0; }
unsigned long PT(getauxval)(unsigned long kind) { return 0; }
void *PT(dlsym)(void *library, const char *name) { return NULL; }

/* Signals: std installs a handler for the overflow of its stack unless there is one already. glibc's
 * structure has the handler first and 152 bytes. */
int PT(sigaction)(int number, const void *new, void *old)
{
    if (old) {
        memset(old, 0, 152);
        *(unsigned long *)old = 1;
    }
    return 0;
}
int PT(sigaltstack)(const void *new, void *old) { return no(ENOSYS); }
unsigned long PT(signal)(int number, unsigned long handler) { return 0; }
int PT(pause)(void) { return no(ENOSYS); }

/* Memory by pages is the heap's. */
void *PT(mmap64)(void *wish, size_t n, int protection, int flags, int file, long at)
{
    return mmap(wish, n, protection, flags, file, at);
}
int PT(munmap)(void *at, size_t n) { return munmap(at, n); }
int PT(mprotect)(void *at, size_t n, int protection) { return 0; }

/* Threads are the host's to start; what is asked about the one that there is fails or means
 * nothing. */
int PT(pthread_create)(unsigned long *thread, const void *attributes, void *(*start)(void *), void *value) { return EAGAIN; }
int PT(pthread_join)(unsigned long thread, void **value) { return ESRCH; }
int PT(pthread_detach)(unsigned long thread) { return ESRCH; }
unsigned long PT(pthread_self)(void) { return 1; }
int PT(pthread_setname_np)(unsigned long thread, const char *name) { return 0; }
int PT(pthread_getattr_np)(unsigned long thread, void *attributes) { return ENOSYS; }
int PT(pthread_attr_init)(void *attributes)
{
    memset(attributes, 0, 56);
    return 0;
}
int PT(pthread_attr_destroy)(void *attributes) { return 0; }
int PT(pthread_attr_setstacksize)(void *attributes, size_t n) { return 0; }
int PT(pthread_attr_getguardsize)(const void *attributes, size_t *n)
{
    *n = 0;
    return 0;
}
int PT(pthread_attr_getstack)(const void *attributes, void **at, size_t *n) { return ENOSYS; }

/* Calls of the kernel by number: random bytes, and nothing that waits, for there is one thread. */
long PT(syscall)(long number, void *a, size_t b, unsigned c)
{
    enum { FUTEX = 202, GETTID = 186, GETRANDOM = 318 };
    switch (number) {
    case GETRANDOM:
        return b > 256 ? no(EINVAL) : getentropy(a, b) ? -1 : (long)b;
    case GETTID:
        return 1;
    case FUTEX:
        return 0;
    default:
        return no(ENOSYS);
    }
}

/* Of programs of tests: starting processes, and talking to them. */
long PT(absent)(void) { return no(ENOSYS); }

/* Of code that was compiled to unwind and linked where nothing does. */
void PT(rust_eh_personality)(void) { __builtin_trap(); }
