/* POSIX threads and those of C11: locks, conditions, barriers, semaphores, for the threads that a
 * program starts (thread_start.c) and for those of the host, of which several may be in one domain
 * at once. Whoever waits spins for a moment and then sleeps until he is woken. */
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
#define ADD(place, value) __atomic_fetch_add(place, value, __ATOMIC_SEQ_CST)
#define ALL 0x7fffffffu

/* How often a lock is tried before its waiter sleeps. */
enum { SPINS = 100 };

/* Sleeps while the word has the value, but not longer than until then: 0, also without a cause, or
 * ETIMEDOUT. A clock that cannot be read has run out. */
static int sleep_while(void *word, unsigned value, clockid_t clock, const struct timespec *until)
{
    struct timespec now;
    if (!until) {
        __postern_wait(word, value, -1);
        return 0;
    }
    if ((unsigned long)until->tv_nsec >= 1000000000)
        return EINVAL;
    if (clock_gettime(clock, &now))
        return ETIMEDOUT;
    long long seconds = until->tv_sec - now.tv_sec;
    if (seconds > 1000000000)
        seconds = 1000000000;
    long long left = seconds < -1 ? -1 : seconds * 1000000000 + until->tv_nsec - now.tv_nsec;
    if (left <= 0)
        return ETIMEDOUT;
    __postern_wait(word, value, left);
    return 0;
}

/* Words that are locks: 0 is free, 1 taken, 2 taken with somebody who sleeps. */

static int take(unsigned *word, const struct timespec *until)
{
    int error = 0;
    for (int spin = 0; spin < SPINS; spin++) {
        unsigned nobody = 0;
        if (__atomic_compare_exchange_n(word, &nobody, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return 0;
        __builtin_ia32_pause();
    }
    while (__atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE)) {
        if (error)
            return error;
        error = sleep_while(word, 2, CLOCK_REALTIME, until);
    }
    return 0;
}
static void give(unsigned *word)
{
    if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2)
        __postern_wake(word, 1);
}
/* The same for the locks of the library and of malloc, which spin where this file is not linked. */
void __postern_lock_take(unsigned *word) { take(word, 0); }
void __postern_lock_give(unsigned *word) { give(word); }

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
    int state = 0;
    if (LOAD(once) == 2)
        return 0;
    if (__atomic_compare_exchange_n(once, &state, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        function();
        if (__atomic_exchange_n(once, 2, __ATOMIC_ACQ_REL) == 3)
            __postern_wake(once, ALL);
        return 0;
    }
    while (state != 2)
        if (state == 3 || __atomic_compare_exchange_n(once, &state, 3, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
            __postern_wait(once, 3, -1);
            state = LOAD(once);
        }
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
    int nobody = 0;
    if (!__atomic_compare_exchange_n(&m->__taken, &nobody, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return EBUSY;
    STORE(&m->__owner, self);
    return 0;
}
int pthread_mutex_timedlock(pthread_mutex_t *restrict m, const struct timespec *restrict until)
{
    if (!pthread_mutex_trylock(m))
        return 0;
    if (m->__kind == PTHREAD_MUTEX_ERRORCHECK && LOAD(&m->__owner) == pthread_self())
        return EDEADLK;
    int error = take((unsigned *)&m->__taken, until);
    if (!error)
        STORE(&m->__owner, pthread_self());
    return error;
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
    give((unsigned *)&m->__taken);
    return 0;
}

int pthread_spin_init(pthread_spinlock_t *lock, int shared) { return *lock = 0, 0; }
int pthread_spin_destroy(pthread_spinlock_t *lock) { return 0; }
int pthread_spin_trylock(pthread_spinlock_t *lock) { return __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) ? EBUSY : 0; }
int pthread_spin_lock(pthread_spinlock_t *lock)
{
    for (unsigned turn = 0; pthread_spin_trylock(lock); turn++)
        if (turn < SPINS)
            __builtin_ia32_pause();
        else
            sched_yield();
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
    *c = (pthread_cond_t){ 0, a ? a->__clock : 0, 0 };
    return 0;
}
int pthread_cond_destroy(pthread_cond_t *c) { return 0; }
static int wake(pthread_cond_t *c, unsigned most)
{
    if (__atomic_load_n(&c->__waiters, __ATOMIC_SEQ_CST)) {
        ADD(&c->__count, 1);
        __postern_wake(&c->__count, most);
    }
    return 0;
}
int pthread_cond_broadcast(pthread_cond_t *c) { return wake(c, ALL); }
int pthread_cond_signal(pthread_cond_t *c) { return wake(c, 1); }
int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m, const struct timespec *restrict until)
{
    /* Before the mutex is free: whoever wakes with it in hand finds this. */
    ADD(&c->__waiters, 1);
    unsigned before = LOAD(&c->__count);
    int error = pthread_mutex_unlock(m);
    if (!error) {
        while (!error && LOAD(&c->__count) == before)
            error = sleep_while(&c->__count, before, c->__clock ? (clockid_t)c->__clock : CLOCK_REALTIME, until);
        pthread_mutex_lock(m);
    }
    ADD(&c->__waiters, -1);
    return error;
}
int pthread_cond_wait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m) { return pthread_cond_timedwait(c, m, 0); }

/* Locks of readers and writers: a writer that waits goes before readers that come. */

int pthread_rwlockattr_init(pthread_rwlockattr_t *a) { return 0; }
int pthread_rwlockattr_destroy(pthread_rwlockattr_t *a) { return 0; }
int pthread_rwlockattr_getpshared(const pthread_rwlockattr_t *restrict a, int *restrict shared) { return *shared = 0, 0; }
int pthread_rwlockattr_setpshared(pthread_rwlockattr_t *a, int shared) { return shared ? ENOTSUP : 0; }
int pthread_rwlock_init(pthread_rwlock_t *restrict l, const pthread_rwlockattr_t *restrict a)
{
    return *l = (pthread_rwlock_t){ 0, 0, 0, 0 }, 0;
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
/* Others may go on now: whoever waits looks again. */
static void let_on(pthread_rwlock_t *l)
{
    ADD(&l->__turn, 1);
    if (__atomic_load_n(&l->__waiters, __ATOMIC_SEQ_CST))
        __postern_wake(&l->__turn, ALL);
}
static int wait_for(pthread_rwlock_t *l, int (*try)(pthread_rwlock_t *), const struct timespec *until)
{
    int error = 0;
    if (!try(l))
        return 0;
    ADD(&l->__waiters, 1);
    while (!error) {
        unsigned turn = LOAD(&l->__turn);
        if (!try(l))
            break;
        error = sleep_while(&l->__turn, turn, CLOCK_REALTIME, until);
    }
    ADD(&l->__waiters, -1);
    return error;
}
int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict l, const struct timespec *restrict until)
{
    return wait_for(l, pthread_rwlock_tryrdlock, until);
}
int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict l, const struct timespec *restrict until)
{
    ADD(&l->__writers, 1);
    int error = wait_for(l, pthread_rwlock_trywrlock, until);
    ADD(&l->__writers, -1);
    /* Readers waited for this writer. */
    if (error)
        let_on(l);
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
    let_on(l);
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
    unsigned round = LOAD(&b->__round);
    if (__atomic_add_fetch(&b->__arrived, 1, __ATOMIC_ACQ_REL) == b->__wanted) {
        STORE(&b->__arrived, 0);
        STORE(&b->__round, round + 1);
        __postern_wake(&b->__round, ALL);
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    while (LOAD(&b->__round) == round)
        __postern_wait(&b->__round, round, -1);
    return 0;
}

/* Semaphores. */

static int failed(int error) { return errno = error, -1; }

int sem_init(sem_t *s, int shared, unsigned count)
{
    if (shared || count > SEM_VALUE_MAX)
        return failed(shared ? ENOSYS : EINVAL);
    *s = (sem_t){ count, 0 };
    return 0;
}
int sem_destroy(sem_t *s) { return 0; }
int sem_post(sem_t *s)
{
    ADD(&s->__count, 1);
    if (__atomic_load_n(&s->__waiters, __ATOMIC_SEQ_CST))
        __postern_wake(&s->__count, 1);
    return 0;
}
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
    int error = 0;
    if (!sem_trywait(s))
        return 0;
    ADD(&s->__waiters, 1);
    while (sem_trywait(s) && !(error = sleep_while(&s->__count, 0, CLOCK_REALTIME, until)))
        ;
    ADD(&s->__waiters, -1);
    return error ? failed(error) : 0;
}
int sem_wait(sem_t *s) { return sem_timedwait(s, 0); }
int sem_getvalue(sem_t *restrict s, int *restrict value) { return *value = (int)LOAD(&s->__count), 0; }

/* The same in C11's words. */

static int told(int error)
{
    return !error ? thrd_success : error == EBUSY ? thrd_busy : error == ETIMEDOUT ? thrd_timedout : error == ENOMEM ? thrd_nomem : thrd_error;
}
thrd_t thrd_current(void) { return pthread_self(); }
int thrd_detach(thrd_t thread) { return told(pthread_detach(thread)); }
int thrd_equal(thrd_t a, thrd_t b) { return a == b; }
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
