/* The library's locks, for the threads that are in one domain together. In a program that uses POSIX
 * threads whoever waits sleeps; others, with threads of the host's only, spin. The owner is known
 * by its data stack. */
#include <stdlib.h>
#include <sys/lock.h>

#include "thread.h"

struct __lock {
    unsigned taken; /* 2 if somebody sleeps */
    volatile unsigned owner;
    unsigned depth;
};

struct __lock __lock___sinit_recursive_mutex, __lock___sfp_recursive_mutex, __lock___atexit_recursive_mutex, __lock___at_quick_exit_mutex,
    __lock___malloc_recursive_mutex, __lock___env_recursive_mutex, __lock___tz_mutex, __lock___dd_hash_mutex,
    __lock___arc4random_mutex, __lock___mappings;

void __retarget_lock_init_recursive(_LOCK_T *lock) { *lock = calloc(1, sizeof **lock); }
void __retarget_lock_init(_LOCK_T *lock) { __retarget_lock_init_recursive(lock); }
void __retarget_lock_close_recursive(_LOCK_T lock) { free(lock); }
void __retarget_lock_close(_LOCK_T lock) { free(lock); }

void __retarget_lock_acquire(_LOCK_T lock)
{
    if (!lock)
        return;
    if (__postern_lock_take) {
        __postern_lock_take(&lock->taken);
        return;
    }
    while (__atomic_exchange_n(&lock->taken, 1, __ATOMIC_ACQUIRE))
        while (__atomic_load_n(&lock->taken, __ATOMIC_RELAXED))
            __builtin_ia32_pause();
}
int __retarget_lock_try_acquire(_LOCK_T lock)
{
    unsigned nobody = 0;
    return !lock || __atomic_compare_exchange_n(&lock->taken, &nobody, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
void __retarget_lock_release(_LOCK_T lock)
{
    if (!lock)
        return;
    if (__postern_lock_give)
        __postern_lock_give(&lock->taken);
    else
        __atomic_store_n(&lock->taken, 0, __ATOMIC_RELEASE);
}

static unsigned self(void) { return (unsigned)(uintptr_t)this_thread(); }

int __retarget_lock_try_acquire_recursive(_LOCK_T lock)
{
    if (lock) {
        if (lock->owner != self()) {
            if (!__retarget_lock_try_acquire(lock))
                return 0;
            lock->owner = self();
        }
        lock->depth++;
    }
    return 1;
}
void __retarget_lock_acquire_recursive(_LOCK_T lock)
{
    if (lock) {
        if (lock->owner != self()) {
            __retarget_lock_acquire(lock);
            lock->owner = self();
        }
        lock->depth++;
    }
}
void __retarget_lock_release_recursive(_LOCK_T lock)
{
    if (lock && !--lock->depth) {
        lock->owner = 0;
        __retarget_lock_release(lock);
    }
}
