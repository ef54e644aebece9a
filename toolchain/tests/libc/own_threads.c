/* Programs with threads that end badly, and calls of what the library stands on with anything. The
 * first argument says which; functions are called by the host, too. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern int __postern_thread_start(void *, void *);
extern void __postern_thread_exit(void *, unsigned);
extern int __postern_wait(const void *, unsigned, long long);
extern int __postern_wake(const void *, unsigned);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static volatile int spinning;
static int begun, most, now;

static void note(void) { __atomic_fetch_add(&begun, 1, __ATOMIC_SEQ_CST); }

static void *spins(void *argument)
{
    note();
    for (;;)
        spinning = 1;
}
static void *waits(void *argument)
{
    note();
    pthread_mutex_lock(&mutex);
    for (;;)
        pthread_cond_wait(&never, &mutex);
}
static void *sleeps(void *argument)
{
    note();
    for (;;)
        sleep(1000);
}
static void *reads(void *argument)
{
    char c;
    note();
    for (;;)
        if (read(0, &c, 1) == 0)
            usleep(100);
}
static void *asks(void *argument)
{
    struct timespec time;
    note();
    for (;;)
        clock_gettime(CLOCK_MONOTONIC, &time);
}
static void *allocates(void *argument)
{
    note();
    for (;;)
        free(malloc(1000));
}
static void *returns(void *argument) { return argument; }
static void *leaves(void *argument)
{
    waits(0);
    return 0;
}

static void *(*const KINDS[])(void *) = { spins, waits, sleeps, reads, asks, allocates };

/* Starts so many threads of all kinds that never end; how many began. */
int start_all(int count)
{
    pthread_t thread;
    int before = begun, started = 0;
    for (int i = 0; i < count; i++)
        started += pthread_create(&thread, NULL, KINDS[i % 6], NULL) == 0;
    while (__atomic_load_n(&begun, __ATOMIC_SEQ_CST) < before + started)
        usleep(100);
    return started;
}
int start_waiting(void)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, waits, NULL);
}
int value;
int next(void) { return ++value; }

/* Starts more of its kind for as long as it can, and goes. */
static void *multiplies(void *argument)
{
    pthread_t thread;
    int mine = __atomic_add_fetch(&now, 1, __ATOMIC_SEQ_CST), seen = __atomic_load_n(&most, __ATOMIC_SEQ_CST);
    while (mine > seen && !__atomic_compare_exchange_n(&most, &seen, mine, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    note();
    for (int i = 0; i < 20 && __atomic_load_n(&begun, __ATOMIC_SEQ_CST) < 500; i++)
        if (!pthread_create(&thread, NULL, multiplies, NULL))
            pthread_detach(thread);
    __atomic_fetch_sub(&now, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void *exits(void *argument)
{
    usleep(1000);
    exit((int)(long)argument);
}
static void *breaks_here(void *argument)
{
    usleep(1000);
    *(volatile int *)8 = 1;
    return NULL;
}
static void *aborts(void *argument)
{
    usleep(1000);
    abort();
}
static void *recurses(void *argument)
{
    volatile char room[4096];
    room[0] = 1;
    recurses((void *)room);
    return (void *)(long)room[0];
}

static int grants(int most)
{
    pthread_t threads[64], other;
    int started = 0;
    while (started < 64 && !pthread_create(&threads[started], NULL, waits, NULL))
        started++;
    if (started != most)
        return 1;
    if (pthread_create(&other, NULL, returns, NULL) != EAGAIN)
        return 2;
    return 0;
}
/* When a thread is joined there is room for another one. */
static int again(int most)
{
    pthread_t threads[64];
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < most; i++)
            if (pthread_create(&threads[i], NULL, returns, (void *)(long)(round + i)))
                return 3;
        for (int i = 0; i < most; i++) {
            void *value;
            if (pthread_join(threads[i], &value) || (long)value != round + i)
                return 4;
        }
    }
    return 0;
}

/* Each call of a service with this word, which is no good. */
int garbage(void *word)
{
    int sum = 0;
    sum += __postern_wait(word, 0, 1000000) == 0;
    sum += __postern_wait(word, 1, -1) == 0;
    sum += __postern_wake(word, ~0u) > 0;
    sum += __postern_thread_start(word, word) == 0;
    return sum;
}
int wait_for(void *word, unsigned value, long nanoseconds) { return __postern_wait(word, value, nanoseconds); }
int wake(void *word, unsigned most) { return __postern_wake(word, most); }
/* Ends the call. */
int thread_exit(void *word)
{
    __postern_thread_exit(word, 0x12345678);
    return 1;
}
int *place(void) { return &value; }
static void *goes_wrong(void *word)
{
    note();
    __postern_thread_exit(word, 7);
    return NULL;
}
int exit_at(void *word)
{
    pthread_t thread;
    int before = begun;
    int error = pthread_create(&thread, NULL, goes_wrong, word);
    while (!error && __atomic_load_n(&begun, __ATOMIC_SEQ_CST) == before)
        usleep(100);
    return error;
}

int main(int count, char **arguments)
{
    const char *what = arguments[1];
    int number = atoi(arguments[2]);
    pthread_t thread;
    if (!strcmp(what, "grants"))
        return grants(number);
    if (!strcmp(what, "again"))
        return again(number);
    if (!strcmp(what, "return"))
        return start_all(number);
    if (!strcmp(what, "exit") || !strcmp(what, "break") || !strcmp(what, "abort") || !strcmp(what, "recurse")) {
        start_all(number);
        pthread_create(&thread, NULL, *what == 'e' ? exits : *what == 'b' ? breaks_here : *what == 'a' ? aborts : recurses, (void *)7);
        if (*what == 'e')
            pthread_create(&thread, NULL, exits, (void *)7);
        waits(NULL);
    }
    if (!strcmp(what, "multiply")) {
        while (__atomic_load_n(&begun, __ATOMIC_SEQ_CST) < 500)
            multiplies(NULL);
        /* With this one. */
        return most <= number + 1 ? 0 : 1;
    }
    return 99;
}
