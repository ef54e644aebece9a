/* POSIX threads and those of C11: locks, conditions, keys. Several threads of the host may be in
 * one domain at once; the library starts none. Whoever waits spins for a moment, then lets others
 * run, then sleeps. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "call.h"
#include "thread.h"

#define LOAD(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
#define STORE(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)

/* The next moment of waiting; `turn` counts them. */
static void moment(unsigned *turn)
{
    static const struct timespec SHORT = { 0, 100000 };
    ++*turn;
    if (*turn < 64)
        __builtin_ia32_pause();
    else if (*turn < 256)
        sys(SYS_sched_yield, 0, 0, 0, 0, 0);
    else
        sys(SYS_nanosleep, (long)&SHORT, 0, 0, 0, 0);
}

/* Whether the time, if there is one, is over. */
static int late(clockid_t clock, const struct timespec *until)
{
    struct timespec now;
    if (!until)
        return 0;
    if (clock_gettime(clock, &now))
        return 1;
    return now.tv_sec != until->tv_sec ? now.tv_sec > until->tv_sec : now.tv_nsec >= until->tv_nsec;
}

/* Threads. */

pthread_t pthread_self(void) { return (pthread_t)this_thread(); }
int pthread_equal(pthread_t a, pthread_t b) { return a == b; }
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument)
{
    return EAGAIN;
}
int pthread_join(pthread_t thread, void **value) { return thread == pthread_self() ? EDEADLK : ESRCH; }
int pthread_detach(pthread_t thread) { return thread == pthread_self() ? 0 : ESRCH; }
int pthread_cancel(pthread_t thread) { return ESRCH; }
static void end_of_thread(void);
/* The last thread's end is the program's. */
void pthread_exit(void *value)
{
    end_of_thread();
    exit(0);
}
int pthread_setcancelstate(int state, int *before)
{
    if (before)
        *before = PTHREAD_CANCEL_ENABLE;
    return state == PTHREAD_CANCEL_ENABLE || state == PTHREAD_CANCEL_DISABLE ? 0 : EINVAL;
}
int pthread_setcanceltype(int type, int *before)
{
    if (before)
        *before = PTHREAD_CANCEL_DEFERRED;
    return type == PTHREAD_CANCEL_DEFERRED || type == PTHREAD_CANCEL_ASYNCHRONOUS ? 0 : EINVAL;
}
void pthread_testcancel(void) {}
int pthread_kill(pthread_t thread, int signal)
{
    if (thread != pthread_self())
        return ESRCH;
    return signal ? (raise(signal) ? EINVAL : 0) : 0;
}
int pthread_sigmask(int how, const sigset_t *set, sigset_t *before) { return sigprocmask(how, set, before) ? EINVAL : 0; }
int pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void)) { return 0; }
int pthread_getcpuclockid(pthread_t thread, clockid_t *clock)
{
    if (thread != pthread_self())
        return ESRCH;
    *clock = 3;
    return 0;
}
int pthread_getconcurrency(void) { return 0; }
int pthread_setconcurrency(int level) { return level < 0 ? EINVAL : 0; }
int pthread_getschedparam(pthread_t thread, int *policy, struct sched_param *parameters)
{
    *policy = SCHED_OTHER;
    memset(parameters, 0, sizeof *parameters);
    return 0;
}
int pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *parameters)
{
    return policy == SCHED_OTHER && parameters->sched_priority == 0 ? 0 : EPERM;
}
int pthread_getname_np(pthread_t thread, char *name, size_t n)
{
    if (!n)
        return ERANGE;
    *name = 0;
    return 0;
}
int pthread_setname_np(pthread_t thread, const char *name) { return strlen(name) > 15 ? ERANGE : 0; }
int sched_yield(void)
{
    sys(SYS_sched_yield, 0, 0, 0, 0, 0);
    return 0;
}
int pthread_yield(void) { return sched_yield(); }
int sched_getcpu(void) { return 0; }
int sched_get_priority_max(int policy) { return 0; }
int sched_get_priority_min(int policy) { return 0; }

int pthread_once(pthread_once_t *once, void (*function)(void))
{
    int nobody = 0;
    unsigned turn = 0;
    if (__atomic_compare_exchange_n(once, &nobody, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        function();
        STORE(once, 2);
    }
    while (LOAD(once) != 2)
        moment(&turn);
    return 0;
}

/* Attributes of threads. */

int pthread_attr_init(pthread_attr_t *a)
{
    memset(a, 0, sizeof *a);
    a->__size = (unsigned long)__postern_stack_mask + 1;
    a->__guard = 4096;
    return 0;
}
int pthread_attr_destroy(pthread_attr_t *a) { return 0; }
int pthread_getattr_np(pthread_t thread, pthread_attr_t *a)
{
    pthread_attr_init(a);
    a->__address = (void *)(thread & ~(unsigned long)__postern_stack_mask);
    return 0;
}
#define FIELD(name, type, field) \
    int pthread_attr_get##name(const pthread_attr_t *restrict a, type *restrict value) { return *value = a->field, 0; } \
    int pthread_attr_set##name(pthread_attr_t *a, type value) { return a->field = value, 0; }
FIELD(detachstate, int, __detached)
FIELD(guardsize, size_t, __guard)
FIELD(inheritsched, int, __inherit)
FIELD(schedpolicy, int, __policy)
FIELD(scope, int, __scope)
int pthread_attr_getstacksize(const pthread_attr_t *restrict a, size_t *restrict size) { return *size = a->__size, 0; }
int pthread_attr_setstacksize(pthread_attr_t *a, size_t size)
{
    return size < PTHREAD_STACK_MIN ? EINVAL : (a->__size = size, 0);
}
int pthread_attr_getstack(const pthread_attr_t *restrict a, void **restrict address, size_t *restrict size)
{
    *address = a->__address;
    *size = a->__size;
    return 0;
}
int pthread_attr_setstack(pthread_attr_t *a, void *address, size_t size)
{
    a->__address = address;
    return pthread_attr_setstacksize(a, size);
}
int pthread_attr_getschedparam(const pthread_attr_t *restrict a, struct sched_param *restrict p) { return *p = a->__parameters, 0; }
int pthread_attr_setschedparam(pthread_attr_t *restrict a, const struct sched_param *restrict p)
{
    return a->__parameters = *p, 0;
}

/* Mutexes. */

int pthread_mutexattr_init(pthread_mutexattr_t *a) { return a->__kind = 0, 0; }
int pthread_mutexattr_destroy(pthread_mutexattr_t *a) { return 0; }
int pthread_mutexattr_gettype(const pthread_mutexattr_t *restrict a, int *restrict kind) { return *kind = a->__kind, 0; }
int pthread_mutexattr_settype(pthread_mutexattr_t *a, int kind)
{
    return kind < 0 || kind > PTHREAD_MUTEX_ERRORCHECK ? EINVAL : (a->__kind = kind, 0);
}
int pthread_mutexattr_getpshared(const pthread_mutexattr_t *restrict a, int *restrict shared) { return *shared = 0, 0; }
int pthread_mutexattr_setpshared(pthread_mutexattr_t *a, int shared) { return shared ? ENOTSUP : 0; }
int pthread_mutexattr_getprotocol(const pthread_mutexattr_t *restrict a, int *restrict protocol) { return *protocol = 0, 0; }
int pthread_mutexattr_setprotocol(pthread_mutexattr_t *a, int protocol) { return protocol ? ENOTSUP : 0; }

int pthread_mutex_init(pthread_mutex_t *restrict m, const pthread_mutexattr_t *restrict a)
{
    *m = (pthread_mutex_t){ 0, a ? a->__kind : 0, 0, 0 };
    return 0;
}
int pthread_mutex_destroy(pthread_mutex_t *m) { return LOAD(&m->__taken) ? EBUSY : 0; }

int pthread_mutex_trylock(pthread_mutex_t *m)
{
    pthread_t self = pthread_self();
    if (m->__kind == PTHREAD_MUTEX_RECURSIVE && LOAD(&m->__owner) == self) {
        m->__depth++;
        return 0;
    }
    if (__atomic_exchange_n(&m->__taken, 1, __ATOMIC_ACQUIRE))
        return EBUSY;
    STORE(&m->__owner, self);
    return 0;
}
int pthread_mutex_timedlock(pthread_mutex_t *restrict m, const struct timespec *restrict until)
{
    unsigned turn = 0;
    while (pthread_mutex_trylock(m)) {
        if (m->__kind == PTHREAD_MUTEX_ERRORCHECK && LOAD(&m->__owner) == pthread_self())
            return EDEADLK;
        if (late(CLOCK_REALTIME, until))
            return ETIMEDOUT;
        moment(&turn);
    }
    return 0;
}
int pthread_mutex_lock(pthread_mutex_t *m) { return pthread_mutex_timedlock(m, 0); }
int pthread_mutex_unlock(pthread_mutex_t *m)
{
    if (m->__kind != PTHREAD_MUTEX_NORMAL && LOAD(&m->__owner) != pthread_self())
        return EPERM;
    if (m->__depth) {
        m->__depth--;
        return 0;
    }
    STORE(&m->__owner, 0);
    STORE(&m->__taken, 0);
    return 0;
}

int pthread_spin_init(pthread_spinlock_t *lock, int shared) { return *lock = 0, 0; }
int pthread_spin_destroy(pthread_spinlock_t *lock) { return 0; }
int pthread_spin_trylock(pthread_spinlock_t *lock) { return __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) ? EBUSY : 0; }
int pthread_spin_lock(pthread_spinlock_t *lock)
{
    for (unsigned turn = 0; pthread_spin_trylock(lock);)
        moment(&turn);
    return 0;
}
int pthread_spin_unlock(pthread_spinlock_t *lock) { return STORE(lock, 0), 0; }

/* Conditions. */

int pthread_condattr_init(pthread_condattr_t *a) { return a->__clock = 0, 0; }
int pthread_condattr_destroy(pthread_condattr_t *a) { return 0; }
int pthread_condattr_getclock(const pthread_condattr_t *restrict a, clockid_t *restrict clock)
{
    return *clock = a->__clock ? (clockid_t)a->__clock : CLOCK_REALTIME, 0;
}
int pthread_condattr_setclock(pthread_condattr_t *a, clockid_t clock)
{
    return clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC ? EINVAL : (a->__clock = (int)clock, 0);
}
int pthread_condattr_getpshared(const pthread_condattr_t *restrict a, int *restrict shared) { return *shared = 0, 0; }
int pthread_condattr_setpshared(pthread_condattr_t *a, int shared) { return shared ? ENOTSUP : 0; }
int pthread_cond_init(pthread_cond_t *restrict c, const pthread_condattr_t *restrict a)
{
    *c = (pthread_cond_t){ 0, a ? a->__clock : 0 };
    return 0;
}
int pthread_cond_destroy(pthread_cond_t *c) { return 0; }
int pthread_cond_broadcast(pthread_cond_t *c) { return __atomic_fetch_add(&c->__count, 1, __ATOMIC_RELEASE), 0; }
int pthread_cond_signal(pthread_cond_t *c) { return pthread_cond_broadcast(c); }
int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m, const struct timespec *restrict until)
{
    unsigned before = LOAD(&c->__count), turn = 0;
    int over = 0;
    int error = pthread_mutex_unlock(m);
    if (error)
        return error;
    while (LOAD(&c->__count) == before && !(over = late(c->__clock ? (clockid_t)c->__clock : CLOCK_REALTIME, until)))
        moment(&turn);
    pthread_mutex_lock(m);
    return over ? ETIMEDOUT : 0;
}
int pthread_cond_wait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m) { return pthread_cond_timedwait(c, m, 0); }

/* Locks of readers and writers: a writer that waits goes before readers that come. */

int pthread_rwlockattr_init(pthread_rwlockattr_t *a) { return 0; }
int pthread_rwlockattr_destroy(pthread_rwlockattr_t *a) { return 0; }
int pthread_rwlockattr_getpshared(const pthread_rwlockattr_t *restrict a, int *restrict shared) { return *shared = 0, 0; }
int pthread_rwlockattr_setpshared(pthread_rwlockattr_t *a, int shared) { return shared ? ENOTSUP : 0; }
int pthread_rwlock_init(pthread_rwlock_t *restrict l, const pthread_rwlockattr_t *restrict a)
{
    return *l = (pthread_rwlock_t){ 0, 0 }, 0;
}
int pthread_rwlock_destroy(pthread_rwlock_t *l) { return LOAD(&l->__inside) ? EBUSY : 0; }
int pthread_rwlock_tryrdlock(pthread_rwlock_t *l)
{
    int inside = LOAD(&l->__inside);
    while (inside >= 0 && !LOAD(&l->__writers))
        if (__atomic_compare_exchange_n(&l->__inside, &inside, inside + 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
            return 0;
    return EBUSY;
}
int pthread_rwlock_trywrlock(pthread_rwlock_t *l)
{
    int nobody = 0;
    return __atomic_compare_exchange_n(&l->__inside, &nobody, -1, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE) ? 0 : EBUSY;
}
int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict l, const struct timespec *restrict until)
{
    for (unsigned turn = 0; pthread_rwlock_tryrdlock(l); moment(&turn))
        if (late(CLOCK_REALTIME, until))
            return ETIMEDOUT;
    return 0;
}
int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict l, const struct timespec *restrict until)
{
    int error = 0;
    __atomic_fetch_add(&l->__writers, 1, __ATOMIC_ACQ_REL);
    for (unsigned turn = 0; !error && pthread_rwlock_trywrlock(l); moment(&turn))
        error = late(CLOCK_REALTIME, until) ? ETIMEDOUT : 0;
    __atomic_fetch_sub(&l->__writers, 1, __ATOMIC_ACQ_REL);
    return error;
}
int pthread_rwlock_rdlock(pthread_rwlock_t *l) { return pthread_rwlock_timedrdlock(l, 0); }
int pthread_rwlock_wrlock(pthread_rwlock_t *l) { return pthread_rwlock_timedwrlock(l, 0); }
int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
    if (LOAD(&l->__inside) < 0)
        STORE(&l->__inside, 0);
    else
        __atomic_fetch_sub(&l->__inside, 1, __ATOMIC_RELEASE);
    return 0;
}

/* Barriers. */

int pthread_barrierattr_init(pthread_barrierattr_t *a) { return 0; }
int pthread_barrierattr_destroy(pthread_barrierattr_t *a) { return 0; }
int pthread_barrier_init(pthread_barrier_t *restrict b, const pthread_barrierattr_t *restrict a, unsigned wanted)
{
    if (!wanted)
        return EINVAL;
    return *b = (pthread_barrier_t){ wanted, 0, 0 }, 0;
}
int pthread_barrier_destroy(pthread_barrier_t *b) { return 0; }
int pthread_barrier_wait(pthread_barrier_t *b)
{
    unsigned round = LOAD(&b->__round), turn = 0;
    if (__atomic_add_fetch(&b->__arrived, 1, __ATOMIC_ACQ_REL) == b->__wanted) {
        STORE(&b->__arrived, 0);
        STORE(&b->__round, round + 1);
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    while (LOAD(&b->__round) == round)
        moment(&turn);
    return 0;
}

/* What a thread has to do at its end. */

static _Thread_local struct __pthread_cleanup *cleanups;

void __pthread_cleanup_push(struct __pthread_cleanup *cleanup)
{
    cleanup->before = cleanups;
    cleanups = cleanup;
}
void __pthread_cleanup_pop(struct __pthread_cleanup *cleanup, int execute)
{
    cleanups = cleanup->before;
    if (execute)
        cleanup->routine(cleanup->argument);
}

/* Keys: each thread has its own values. Their destructors run in a thread that calls pthread_exit;
 * the extension does not see how the host's threads end. */

static struct {
    int used;
    void (*destructor)(void *);
} keys[PTHREAD_KEYS_MAX];
static _Thread_local const void **values;

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
    for (unsigned k = 0; k < PTHREAD_KEYS_MAX; k++)
        if (!__atomic_exchange_n(&keys[k].used, 1, __ATOMIC_ACQ_REL)) {
            keys[k].destructor = destructor;
            *key = k;
            return 0;
        }
    return EAGAIN;
}
int pthread_key_delete(pthread_key_t key)
{
    if (key >= PTHREAD_KEYS_MAX || !__atomic_exchange_n(&keys[key].used, 0, __ATOMIC_ACQ_REL))
        return EINVAL;
    if (values)
        values[key] = 0;
    return 0;
}
void *pthread_getspecific(pthread_key_t key) { return key < PTHREAD_KEYS_MAX && values ? (void *)values[key] : 0; }
int pthread_setspecific(pthread_key_t key, const void *value)
{
    if (key >= PTHREAD_KEYS_MAX || !LOAD(&keys[key].used))
        return EINVAL;
    if (!values && !(values = calloc(PTHREAD_KEYS_MAX, sizeof *values)))
        return ENOMEM;
    values[key] = value;
    return 0;
}

static void end_of_thread(void)
{
    while (cleanups)
        __pthread_cleanup_pop(cleanups, 1);
    int again = values != 0;
    for (int round = 0; again && round < PTHREAD_DESTRUCTOR_ITERATIONS; round++) {
        again = 0;
        for (unsigned k = 0; k < PTHREAD_KEYS_MAX; k++) {
            void *value = (void *)values[k];
            if (!value || !LOAD(&keys[k].used) || !keys[k].destructor)
                continue;
            values[k] = 0;
            keys[k].destructor(value);
            again = 1;
        }
    }
}

/* Semaphores. */

static int failed(int error) { return errno = error, -1; }

int sem_init(sem_t *s, int shared, unsigned count)
{
    if (shared || count > SEM_VALUE_MAX)
        return failed(shared ? ENOSYS : EINVAL);
    s->__count = count;
    return 0;
}
int sem_destroy(sem_t *s) { return 0; }
int sem_post(sem_t *s) { return __atomic_fetch_add(&s->__count, 1, __ATOMIC_RELEASE), 0; }
int sem_trywait(sem_t *s)
{
    unsigned count = LOAD(&s->__count);
    while (count)
        if (__atomic_compare_exchange_n(&s->__count, &count, count - 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
            return 0;
    return failed(EAGAIN);
}
int sem_timedwait(sem_t *restrict s, const struct timespec *restrict until)
{
    for (unsigned turn = 0; sem_trywait(s); moment(&turn))
        if (late(CLOCK_REALTIME, until))
            return failed(ETIMEDOUT);
    return 0;
}
int sem_wait(sem_t *s) { return sem_timedwait(s, 0); }
int sem_getvalue(sem_t *restrict s, int *restrict value) { return *value = (int)LOAD(&s->__count), 0; }

/* The same in C11's words. */

static int told(int error)
{
    return !error ? thrd_success : error == EBUSY ? thrd_busy : error == ETIMEDOUT ? thrd_timedout : error == ENOMEM ? thrd_nomem : thrd_error;
}
int thrd_create(thrd_t *thread, thrd_start_t function, void *argument) { return thrd_error; }
thrd_t thrd_current(void) { return pthread_self(); }
int thrd_detach(thrd_t thread) { return told(pthread_detach(thread)); }
int thrd_equal(thrd_t a, thrd_t b) { return a == b; }
void thrd_exit(int value) { pthread_exit(0); }
int thrd_join(thrd_t thread, int *value) { return thrd_error; }
int thrd_sleep(const struct timespec *time, struct timespec *left) { return nanosleep(time, left) ? errno == EINTR ? -1 : -2 : 0; }
void thrd_yield(void) { sched_yield(); }
void call_once(once_flag *once, void (*function)(void)) { pthread_once(once, function); }
int mtx_init(mtx_t *m, int kind)
{
    *m = (mtx_t){ 0, kind & mtx_recursive, 0, 0 };
    return thrd_success;
}
void mtx_destroy(mtx_t *m) {}
int mtx_lock(mtx_t *m) { return told(pthread_mutex_lock(m)); }
int mtx_timedlock(mtx_t *restrict m, const struct timespec *restrict until) { return told(pthread_mutex_timedlock(m, until)); }
int mtx_trylock(mtx_t *m) { return told(pthread_mutex_trylock(m)); }
int mtx_unlock(mtx_t *m) { return told(pthread_mutex_unlock(m)); }
int cnd_init(cnd_t *c) { return told(pthread_cond_init(c, 0)); }
void cnd_destroy(cnd_t *c) {}
int cnd_signal(cnd_t *c) { return told(pthread_cond_signal(c)); }
int cnd_broadcast(cnd_t *c) { return told(pthread_cond_broadcast(c)); }
int cnd_wait(cnd_t *c, mtx_t *m) { return told(pthread_cond_wait(c, m)); }
int cnd_timedwait(cnd_t *restrict c, mtx_t *restrict m, const struct timespec *restrict until)
{
    return told(pthread_cond_timedwait(c, m, until));
}
int tss_create(tss_t *key, tss_dtor_t destructor) { return told(pthread_key_create(key, destructor)); }
void tss_delete(tss_t key) { pthread_key_delete(key); }
void *tss_get(tss_t key) { return pthread_getspecific(key); }
int tss_set(tss_t key, void *value) { return told(pthread_setspecific(key, value)); }
