/* Threads that a program starts: how they begin and end, and what each has for itself.
 *
 * The host makes a thread and calls `begin` in it, with a record that the program frees: the one
 * who joins it, or the thread itself, if nobody will. At its end a thread gives back what the
 * library holds for it, and only then says that it is done: its data stack may be another's next. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <reent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "call.h"
#include "thread.h"

#define LOAD(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)

/* ENDING: it will be done in a moment, and whoever joins it waits for that. */
enum { RUNNING, DETACHED, ENDING, DONE };
#define MARK 0x7164a3c5u

struct thread {
    unsigned mark, state;
    union {
        void *(*posix)(void *);
        thrd_start_t c11;
    } function;
    int is_c11;
    void *argument, *value;
    struct __postern_thread *block;
    char name[16];
};

/* Threads that the program started and that have not come to their end. */
static unsigned live;

extern void __sinit(struct _reent *) __attribute__((weak));
extern void _reclaim_reent(struct _reent *) __attribute__((weak));
extern void __postern_malloc_end_thread(void) __attribute__((weak));

pthread_t pthread_self(void)
{
    struct __postern_thread *block = this_thread();
    return block->own ? (pthread_t)block->own : (pthread_t)block;
}
int pthread_equal(pthread_t a, pthread_t b) { return a == b; }

/* The record of a thread, if the program started it. */
static struct thread *record_of(pthread_t thread)
{
    struct thread *t = (struct thread *)thread;
    return t && t->mark == MARK ? t : 0;
}

/* Cleanup. */

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

/* Destructors of thread-local variables of C++. */

struct destructor {
    void (*function)(void *);
    void *object;
    struct destructor *before;
};
static _Thread_local struct destructor *destructors;

/* False in a thread that the program did not start: that one's end is not seen. */
int __postern_thread_atexit(void (*function)(void *), void *object)
{
    struct destructor *d = this_thread()->own ? malloc(sizeof *d) : 0;
    if (d) {
        *d = (struct destructor){ function, object, destructors };
        destructors = d;
    }
    return d != 0;
}

/* Keys: each thread has its own values. Their destructors run in a thread that the program started,
 * and in one that calls pthread_exit; how the host's threads end is not seen. */

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

/* What a thread has to do at its end. */
static void end_of_thread(void)
{
    while (cleanups)
        __pthread_cleanup_pop(cleanups, 1);
    while (destructors) {
        struct destructor *d = destructors;
        destructors = d->before;
        d->function(d->object);
        free(d);
    }
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

/* Gives back what the library holds for the calling thread, but for its record. */
static void give_back(struct __postern_thread *block)
{
    free(values);
    values = 0;
    struct _reent *reent = block->reent;
    block->reent = 0;
    if (reent && reent != _impure_ptr && _reclaim_reent) {
        /* Streams are the program's, and stay open. */
        reent->__sdidinit = 0;
        _reclaim_reent(reent);
        free(reent);
    }
}

/* In a thread that the program did not start: its end is the program's, once it is the last. */
void pthread_exit(void *value)
{
    struct __postern_thread *block = this_thread();
    struct thread *t = block->own;
    end_of_thread();
    if (!t) {
        for (unsigned left; (left = LOAD(&live));)
            __postern_wait(&live, left, -1);
        exit(0);
    }
    t->value = value;
    give_back(block);
    block->own = 0;
    unsigned state = RUNNING;
    int joined = __atomic_compare_exchange_n(&t->state, &state, ENDING, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    if (!joined)
        free(t);
    if (__postern_malloc_end_thread)
        __postern_malloc_end_thread();
    __atomic_fetch_sub(&live, 1, __ATOMIC_SEQ_CST);
    __postern_wake(&live, 0x7fffffff);
    __postern_thread_exit(joined ? &t->state : 0, DONE);
    __builtin_trap();
}

/* Where the host's thread enters. */
static void begin(struct thread *t)
{
    t->block = this_thread();
    t->block->own = t;
    pthread_exit(t->is_c11 ? (void *)(long)t->function.c11(t->argument) : t->function.posix(t->argument));
}

static int start(pthread_t *thread, struct thread *t)
{
    /* At the program's end streams are flushed that the first thread knows of. */
    if (__sinit && !_impure_ptr->__sdidinit)
        __sinit(_impure_ptr);
    t->mark = MARK;
    *thread = (pthread_t)t;
    __atomic_fetch_add(&live, 1, __ATOMIC_SEQ_CST);
    if (!__postern_thread_start(begin, t))
        return 0;
    __atomic_fetch_sub(&live, 1, __ATOMIC_SEQ_CST);
    __postern_wake(&live, 0x7fffffff);
    free(t);
    return EAGAIN;
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*function)(void *), void *restrict argument)
{
    struct thread *t = calloc(1, sizeof *t);
    if (!t)
        return EAGAIN;
    t->function.posix = function;
    t->argument = argument;
    t->state = attributes && attributes->__detached == PTHREAD_CREATE_DETACHED ? DETACHED : RUNNING;
    return start(thread, t);
}

int pthread_join(pthread_t thread, void **value)
{
    struct thread *t = record_of(thread);
    unsigned state;
    if (thread == pthread_self())
        return EDEADLK;
    if (!t)
        return ESRCH;
    while ((state = LOAD(&t->state)) == RUNNING || state == ENDING)
        __postern_wait(&t->state, state, -1);
    if (state == DETACHED)
        return EINVAL;
    if (value)
        *value = t->value;
    t->mark = 0;
    free(t);
    return 0;
}
int pthread_detach(pthread_t thread)
{
    struct thread *t = record_of(thread);
    unsigned state = RUNNING;
    if (!t)
        return thread == pthread_self() ? 0 : ESRCH;
    if (__atomic_compare_exchange_n(&t->state, &state, DETACHED, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return 0;
    return state == DETACHED ? EINVAL : pthread_join(thread, 0);
}
int pthread_cancel(pthread_t thread) { return record_of(thread) ? ENOSYS : ESRCH; }
int pthread_kill(pthread_t thread, int signal)
{
    if (thread == pthread_self())
        return signal ? (raise(signal) ? EINVAL : 0) : 0;
    return !record_of(thread) ? ESRCH : signal ? ENOSYS : 0;
}

int pthread_getattr_np(pthread_t thread, pthread_attr_t *a)
{
    struct thread *t = record_of(thread);
    unsigned long place = t ? (unsigned long)t->block : thread;
    pthread_attr_init(a);
    a->__address = (void *)(place & ~(unsigned long)__postern_stack_mask);
    a->__detached = t && LOAD(&t->state) == DETACHED;
    return 0;
}
int pthread_getname_np(pthread_t thread, char *name, size_t n)
{
    struct thread *t = record_of(thread);
    if (n < sizeof t->name)
        return ERANGE;
    strcpy(name, t ? t->name : "");
    return 0;
}
int pthread_setname_np(pthread_t thread, const char *name)
{
    struct thread *t = record_of(thread);
    if (strlen(name) >= sizeof t->name)
        return ERANGE;
    if (t)
        strcpy(t->name, name);
    return 0;
}

/* The same in C11's words. */

int thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
    struct thread *t = calloc(1, sizeof *t);
    if (!t)
        return thrd_nomem;
    t->function.c11 = function;
    t->is_c11 = 1;
    t->argument = argument;
    return start(thread, t) ? thrd_error : thrd_success;
}
int thrd_join(thrd_t thread, int *value)
{
    void *result;
    if (pthread_join(thread, &result))
        return thrd_error;
    if (value)
        *value = (int)(long)result;
    return thrd_success;
}
void thrd_exit(int value) { pthread_exit((void *)(long)value); }
