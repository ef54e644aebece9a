/* Threads as libstdc++ asks for them. An extension has no threads of its own, but several threads
 * of the host may be in one domain at once: locks are real, made of atomic operations and waiting;
 * starting a thread fails as it does where there are no more. */
#ifndef POSTERN_GTHR_DEFAULT_H
#define POSTERN_GTHR_DEFAULT_H 1

#include <errno.h>
#include <time.h>

#define __GTHREADS 1
#define __GTHREADS_CXX0X 1
#define __GTHREAD_HAS_COND 1
#define _GLIBCXX_GTHREAD_USE_WEAK 0
#define _GTHREAD_USE_MUTEX_TIMEDLOCK 1

typedef unsigned long __gthread_t;
typedef int __gthread_key_t;
typedef int __gthread_once_t;
typedef int __gthread_mutex_t;
typedef struct {
    unsigned long owner;
    unsigned long count;
} __gthread_recursive_mutex_t;
typedef unsigned __gthread_cond_t;
typedef struct timespec __gthread_time_t;

#define __GTHREAD_ONCE_INIT 0
#define __GTHREAD_MUTEX_INIT 0
#define __GTHREAD_MUTEX_INIT_FUNCTION(m) (*(m) = 0)
#define __GTHREAD_RECURSIVE_MUTEX_INIT {0, 0}
#define __GTHREAD_COND_INIT 0
#define __GTHREAD_TIME_INIT {0, 0}

static inline int __gthread_active_p(void) { return 1; }

/* The place of the thread's data stack tells threads apart. */
static inline __gthread_t __gthread_self(void) { return (unsigned long)__builtin_thread_pointer(); }
static inline int __gthread_equal(__gthread_t a, __gthread_t b) { return a == b; }
static inline int __gthread_yield(void)
{
    __builtin_ia32_pause();
    return 0;
}
static inline int __gthread_create(__gthread_t *thread, void *(*function)(void *), void *argument)
{
    (void)thread, (void)function, (void)argument;
    return EAGAIN;
}
static inline int __gthread_join(__gthread_t thread, void **value)
{
    (void)thread, (void)value;
    return ESRCH;
}
static inline int __gthread_detach(__gthread_t thread)
{
    (void)thread;
    return ESRCH;
}

/* 0 nobody came, 1 somebody is at it, 2 done. */
static inline int __gthread_once(__gthread_once_t *once, void (*function)(void))
{
    int nobody = 0;
    if (__atomic_compare_exchange_n(once, &nobody, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        function();
        __atomic_store_n(once, 2, __ATOMIC_RELEASE);
    }
    while (__atomic_load_n(once, __ATOMIC_ACQUIRE) != 2)
        __builtin_ia32_pause();
    return 0;
}

/* Destructors of thread-specific values would run at the end of a thread, which the extension does
 * not see. */
static inline int __gthread_key_create(__gthread_key_t *key, void (*destructor)(void *))
{
    (void)key, (void)destructor;
    return EAGAIN;
}
static inline int __gthread_key_delete(__gthread_key_t key)
{
    (void)key;
    return EINVAL;
}
static inline void *__gthread_getspecific(__gthread_key_t key)
{
    (void)key;
    return 0;
}
static inline int __gthread_setspecific(__gthread_key_t key, const void *value)
{
    (void)key, (void)value;
    return EINVAL;
}

static inline int __gthread_mutex_trylock(__gthread_mutex_t *m)
{
    return __atomic_exchange_n(m, 1, __ATOMIC_ACQUIRE) ? EBUSY : 0;
}
static inline int __gthread_mutex_lock(__gthread_mutex_t *m)
{
    while (__atomic_exchange_n(m, 1, __ATOMIC_ACQUIRE))
        while (__atomic_load_n(m, __ATOMIC_RELAXED))
            __builtin_ia32_pause();
    return 0;
}
static inline int __gthread_mutex_unlock(__gthread_mutex_t *m)
{
    __atomic_store_n(m, 0, __ATOMIC_RELEASE);
    return 0;
}
static inline int __gthread_mutex_destroy(__gthread_mutex_t *m)
{
    (void)m;
    return 0;
}
static inline int __gthread_late(const __gthread_time_t *until)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec != until->tv_sec ? now.tv_sec > until->tv_sec : now.tv_nsec >= until->tv_nsec;
}
static inline int __gthread_mutex_timedlock(__gthread_mutex_t *m, const __gthread_time_t *until)
{
    while (__gthread_mutex_trylock(m)) {
        if (__gthread_late(until))
            return ETIMEDOUT;
        __builtin_ia32_pause();
    }
    return 0;
}

static inline int __gthread_recursive_mutex_init_function(__gthread_recursive_mutex_t *m)
{
    m->owner = m->count = 0;
    return 0;
}
static inline int __gthread_recursive_mutex_trylock(__gthread_recursive_mutex_t *m)
{
    unsigned long nobody = 0, self = __gthread_self();
    if (__atomic_load_n(&m->owner, __ATOMIC_RELAXED) != self
        && !__atomic_compare_exchange_n(&m->owner, &nobody, self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return EBUSY;
    m->count++;
    return 0;
}
static inline int __gthread_recursive_mutex_lock(__gthread_recursive_mutex_t *m)
{
    while (__gthread_recursive_mutex_trylock(m))
        __builtin_ia32_pause();
    return 0;
}
static inline int __gthread_recursive_mutex_timedlock(__gthread_recursive_mutex_t *m, const __gthread_time_t *until)
{
    while (__gthread_recursive_mutex_trylock(m)) {
        if (__gthread_late(until))
            return ETIMEDOUT;
        __builtin_ia32_pause();
    }
    return 0;
}
static inline int __gthread_recursive_mutex_unlock(__gthread_recursive_mutex_t *m)
{
    if (--m->count == 0)
        __atomic_store_n(&m->owner, 0, __ATOMIC_RELEASE);
    return 0;
}
static inline int __gthread_recursive_mutex_destroy(__gthread_recursive_mutex_t *m)
{
    (void)m;
    return 0;
}

/* A condition is a count of wake-ups; whoever waits may wake for nothing. */
static inline int __gthread_cond_init_function(__gthread_cond_t *c)
{
    *c = 0;
    return 0;
}
static inline int __gthread_cond_destroy(__gthread_cond_t *c)
{
    (void)c;
    return 0;
}
static inline int __gthread_cond_broadcast(__gthread_cond_t *c)
{
    __atomic_fetch_add(c, 1, __ATOMIC_RELEASE);
    return 0;
}
static inline int __gthread_cond_signal(__gthread_cond_t *c) { return __gthread_cond_broadcast(c); }
static inline int __gthread_cond_wait(__gthread_cond_t *c, __gthread_mutex_t *m)
{
    unsigned before = __atomic_load_n(c, __ATOMIC_ACQUIRE);
    __gthread_mutex_unlock(m);
    while (__atomic_load_n(c, __ATOMIC_ACQUIRE) == before)
        __builtin_ia32_pause();
    return __gthread_mutex_lock(m);
}
static inline int __gthread_cond_timedwait(__gthread_cond_t *c, __gthread_mutex_t *m, const __gthread_time_t *until)
{
    unsigned before = __atomic_load_n(c, __ATOMIC_ACQUIRE);
    int late = 0;
    __gthread_mutex_unlock(m);
    while (!late && __atomic_load_n(c, __ATOMIC_ACQUIRE) == before) {
        late = __gthread_late(until);
        __builtin_ia32_pause();
    }
    __gthread_mutex_lock(m);
    return late ? ETIMEDOUT : 0;
}
static inline int __gthread_cond_wait_recursive(__gthread_cond_t *c, __gthread_recursive_mutex_t *m)
{
    unsigned before = __atomic_load_n(c, __ATOMIC_ACQUIRE);
    __gthread_recursive_mutex_unlock(m);
    while (__atomic_load_n(c, __ATOMIC_ACQUIRE) == before)
        __builtin_ia32_pause();
    return __gthread_recursive_mutex_lock(m);
}

#endif
