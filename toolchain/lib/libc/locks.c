/* Locks for the threads of a host that are in one domain together. A lock is held for moments only,
 * so that waiting is spinning. The owner is known by its data stack. */
#include <stdlib.h>
#include <sys/lock.h>

#include "thread.h"

struct __lock {
    volatile char taken;
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
    while (__atomic_test_and_set(&lock->taken, __ATOMIC_ACQUIRE))
        while (__atomic_load_n(&lock->taken, __ATOMIC_RELAXED))
            __builtin_ia32_pause();
}
int __retarget_lock_try_acquire(_LOCK_T lock) { return !lock || !__atomic_test_and_set(&lock->taken, __ATOMIC_ACQUIRE); }
void __retarget_lock_release(_LOCK_T lock)
{
    if (lock)
        __atomic_clear(&lock->taken, __ATOMIC_RELEASE);
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
