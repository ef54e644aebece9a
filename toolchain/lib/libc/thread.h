/* A thread's block at the top of its data stack, which is zero when the stack is first used. */
#ifndef POSTERN_THREAD_H
#define POSTERN_THREAD_H
#include <stdint.h>

struct _reent;
struct thread;
struct __postern_thread {
    uint64_t self, unused[4], canary;
    uint64_t reserved[2];
    struct _reent *reent;
    /* Of a thread that the program started. */
    struct thread *own;
};

/* The size of each data stack less 1, in the info page: who makes the domain chooses it. */
#define __postern_stack_mask (*(const volatile uint32_t *)0x10020)

/* What every domain is granted; errors are negated numbers. The start of a thread needs a grant of
 * the host's, too: EAGAIN without one, or when there are as many as may be. The wait is for a word
 * that has this value, for so many nanoseconds, or for ever if they are negative; it may end
 * without a cause. The exit ends the calling thread; when another can be started in its place, the
 * word, if there is one, becomes the value, and those who wait for it wake. */
#define SERVICE __attribute__((visibility("default"))) extern
SERVICE int __postern_thread_start(void (*function)(struct thread *), struct thread *argument);
SERVICE void __postern_thread_exit(unsigned *word, unsigned value);
SERVICE int __postern_wait(const void *word, unsigned value, long long nanoseconds);
SERVICE int __postern_wake(const void *word, unsigned most);

/* Locks that sleep, where threads.c is linked. */
void __postern_lock_take(unsigned *word) __attribute__((weak));
void __postern_lock_give(unsigned *word) __attribute__((weak));

static inline struct __postern_thread *this_thread(void)
{
    uint32_t top = (uint32_t)(uintptr_t)__builtin_frame_address(0) | __postern_stack_mask;
    return (struct __postern_thread *)(uintptr_t)(top + 1 - 256);
}
#endif
