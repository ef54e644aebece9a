/* Types of POSIX threads. */
#ifndef _SYS__PTHREADTYPES_H_
#define _SYS__PTHREADTYPES_H_

#include <sys/sched.h>

/* The library's record of a thread that the program started; of others, the place of their data
 * stack. */
typedef unsigned long pthread_t;

typedef struct {
    unsigned long __size, __guard;
    void *__address;
    int __detached, __inherit, __policy, __scope;
    struct sched_param __parameters;
} pthread_attr_t;

typedef struct {
    int __kind;
} pthread_mutexattr_t;
/* Free, taken, or 2: taken, and somebody sleeps. */
typedef struct {
    int __taken, __kind;
    unsigned __depth;
    pthread_t __owner;
} pthread_mutex_t;

typedef struct {
    int __clock;
} pthread_condattr_t;
/* Wake-ups so far that somebody waited for. */
typedef struct {
    unsigned __count;
    int __clock;
    unsigned __waiters;
} pthread_cond_t;

typedef struct {
    int __reserved;
} pthread_rwlockattr_t;
/* Readers inside, or -1 for a writer; writers who wait; releases so far. */
typedef struct {
    int __inside, __writers;
    unsigned __turn, __waiters;
} pthread_rwlock_t;

typedef struct {
    int __reserved;
} pthread_barrierattr_t;
typedef struct {
    unsigned __wanted, __arrived, __round;
} pthread_barrier_t;

typedef int pthread_spinlock_t;
typedef unsigned pthread_key_t;
/* 0 nobody came, 1 somebody is at it, 3 somebody sleeps for him, 2 done. */
typedef int pthread_once_t;

#endif
