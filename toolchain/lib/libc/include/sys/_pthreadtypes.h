/* Types of POSIX threads. Several threads of the host may be in one domain at once: locks are real,
 * made of atomic operations and waiting. */
#ifndef _SYS__PTHREADTYPES_H_
#define _SYS__PTHREADTYPES_H_

#include <sys/sched.h>

/* The place of the thread's data stack. */
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
typedef struct {
    int __taken, __kind;
    unsigned __depth;
    pthread_t __owner;
} pthread_mutex_t;

typedef struct {
    int __clock;
} pthread_condattr_t;
/* Wake-ups so far; whoever waits may wake for nothing. */
typedef struct {
    unsigned __count;
    int __clock;
} pthread_cond_t;

typedef struct {
    int __reserved;
} pthread_rwlockattr_t;
/* Readers inside, or -1 for a writer. */
typedef struct {
    int __inside, __writers;
} pthread_rwlock_t;

typedef struct {
    int __reserved;
} pthread_barrierattr_t;
typedef struct {
    unsigned __wanted, __arrived, __round;
} pthread_barrier_t;

typedef int pthread_spinlock_t;
typedef unsigned pthread_key_t;
/* 0 nobody came, 1 somebody is at it, 2 done. */
typedef int pthread_once_t;

#endif
