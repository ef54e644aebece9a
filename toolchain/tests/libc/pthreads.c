/* Threads that a program starts: the same output as with the system's library, whatever the order
 * in which they run. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 6, ROUNDS = 2000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long counter;

static void *count(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
    }
    return (char *)argument + 1;
}

static void counters(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, count, (void *)(i * 10)))
            puts("no thread");
    for (int i = 0; i < THREADS; i++) {
        void *value = NULL;
        int error = pthread_join(threads[i], &value);
        printf("%d: %d %ld\n", i, error, (long)value);
    }
    printf("counted %ld\n", counter);
}

/* A queue with room for four. */
static pthread_cond_t full = PTHREAD_COND_INITIALIZER, empty = PTHREAD_COND_INITIALIZER;
static int queue[4], filled, first;

static void put(int value)
{
    pthread_mutex_lock(&mutex);
    while (filled == 4)
        pthread_cond_wait(&full, &mutex);
    queue[(first + filled++) % 4] = value;
    pthread_cond_signal(&empty);
    pthread_mutex_unlock(&mutex);
}
static int get(void)
{
    pthread_mutex_lock(&mutex);
    while (!filled)
        pthread_cond_wait(&empty, &mutex);
    int value = queue[first];
    first = (first + 1) % 4;
    filled--;
    pthread_cond_signal(&full);
    pthread_mutex_unlock(&mutex);
    return value;
}
static void *produce(void *argument)
{
    for (int i = 1; i <= 1000; i++)
        put(i);
    return NULL;
}
static void *consume(void *argument)
{
    long sum = 0;
    for (int value; (value = get());)
        sum += value;
    return (void *)sum;
}
static void queues(void)
{
    pthread_t producers[2], consumers[3];
    long sum = 0;
    for (int i = 0; i < 3; i++)
        pthread_create(&consumers[i], NULL, consume, NULL);
    for (int i = 0; i < 2; i++)
        pthread_create(&producers[i], NULL, produce, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(producers[i], NULL);
    for (int i = 0; i < 3; i++)
        put(0);
    for (int i = 0; i < 3; i++) {
        void *value;
        pthread_join(consumers[i], &value);
        sum += (long)value;
    }
    printf("consumed %ld\n", sum);
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long left, right;

static void *writes(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_rwlock_wrlock(&rwlock);
        left++;
        right--;
        pthread_rwlock_unlock(&rwlock);
    }
    return NULL;
}
static void *reads(void *argument)
{
    long wrong = 0;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_rwlock_rdlock(&rwlock);
        wrong += left + right != 0;
        pthread_rwlock_unlock(&rwlock);
    }
    return (void *)wrong;
}
static void readers_and_writers(void)
{
    pthread_t threads[5];
    long wrong = 0;
    for (int i = 0; i < 5; i++)
        pthread_create(&threads[i], NULL, i < 2 ? writes : reads, NULL);
    for (int i = 0; i < 5; i++) {
        void *value;
        pthread_join(threads[i], &value);
        wrong += (long)value;
    }
    printf("written %ld %ld, wrong %ld\n", left, right, wrong);
}

static pthread_barrier_t barrier;
static int steps[THREADS];

static void *walks(void *argument)
{
    int me = (int)(long)argument, serial = 0, behind = 0;
    for (int round = 1; round <= 50; round++) {
        steps[me] = round;
        serial += pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
        for (int i = 0; i < 4; i++)
            behind += __atomic_load_n(&steps[i], __ATOMIC_RELAXED) < round;
        pthread_barrier_wait(&barrier);
    }
    return (void *)(long)(serial + 1000 * behind);
}
static void barriers(void)
{
    pthread_t threads[4];
    long sum = 0;
    pthread_barrier_init(&barrier, NULL, 4);
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, walks, (void *)i);
    for (int i = 0; i < 4; i++) {
        void *value;
        pthread_join(threads[i], &value);
        sum += (long)value;
    }
    pthread_barrier_destroy(&barrier);
    printf("barrier %d\n", sum >= 0 && sum % 1000 <= 50 && sum / 1000 == 0);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int times, destroyed;
static pthread_key_t key;
static sem_t semaphore;

static void destroy(void *value) { __atomic_fetch_add(&destroyed, (int)(long)value, __ATOMIC_RELAXED); }
static void initialise(void)
{
    usleep(2000);
    times++;
    pthread_key_create(&key, destroy);
}
static _Thread_local int local = 7;
static _Thread_local char *zero;

static void *has_its_own(void *argument)
{
    long wrong = local != 7 || zero != NULL;
    pthread_once(&once, initialise);
    wrong += pthread_getspecific(key) != NULL;
    pthread_setspecific(key, argument);
    local = (int)(long)argument;
    zero = argument;
    errno = (int)(long)argument;
    sched_yield();
    sem_post(&semaphore);
    wrong += errno != (int)(long)argument || local != (int)(long)argument || pthread_getspecific(key) != argument;
    if ((long)argument % 2)
        pthread_exit((void *)wrong);
    return (void *)wrong;
}
static void own_things(void)
{
    pthread_t threads[THREADS];
    long wrong = 0;
    sem_init(&semaphore, 0, 0);
    for (int round = 0; round < 3; round++) {
        for (long i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, has_its_own, (void *)(i + 1));
        for (int i = 0; i < THREADS; i++)
            sem_wait(&semaphore);
        for (int i = 0; i < THREADS; i++) {
            void *value;
            pthread_join(threads[i], &value);
            wrong += (long)value;
        }
    }
    printf("own things: wrong %ld, once %d, destroyed %d\n", wrong, times, destroyed);
}

static struct timespec in(long milliseconds)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += milliseconds * 1000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}
static void *tries(void *argument)
{
    struct timespec soon = in(20);
    long errors = pthread_mutex_trylock(&mutex) == EBUSY;
    errors += 2 * (pthread_mutex_timedlock(&mutex, &soon) == ETIMEDOUT);
    soon = in(20);
    errors += 4 * (pthread_rwlock_timedrdlock(&rwlock, &soon) == ETIMEDOUT);
    soon = in(20);
    errors += 8 * (sem_timedwait(&semaphore, &soon) == -1 && errno == ETIMEDOUT);
    return (void *)errors;
}
static void timeouts(void)
{
    pthread_t thread;
    void *value;
    struct timespec soon = in(20);
    pthread_mutex_lock(&mutex);
    printf("%d ", pthread_cond_timedwait(&empty, &mutex, &soon) == ETIMEDOUT);
    pthread_rwlock_wrlock(&rwlock);
    pthread_create(&thread, NULL, tries, NULL);
    pthread_join(thread, &value);
    pthread_rwlock_unlock(&rwlock);
    pthread_mutex_unlock(&mutex);
    printf("%ld\n", (long)value);
}

static int gone;
static void *goes(void *argument)
{
    __atomic_fetch_add(&gone, 1, __ATOMIC_RELEASE);
    return NULL;
}
static void *detaches(void *argument)
{
    pthread_detach(pthread_self());
    return goes(argument);
}
static void detached(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        while (pthread_create(&thread, i % 3 ? NULL : &attributes, i % 3 == 1 ? detaches : goes, NULL) == EAGAIN)
            sched_yield();
        if (i % 3 == 2)
            pthread_detach(thread);
    }
    while (__atomic_load_n(&gone, __ATOMIC_ACQUIRE) != 100)
        sched_yield();
    printf("joins itself %d\n", pthread_join(pthread_self(), NULL) == EDEADLK);
}

static int c11(void *argument)
{
    if (argument)
        thrd_exit(-5);
    return 1 << 30;
}
static void in_c11s_words(void)
{
    thrd_t thread;
    int value = 0;
    printf("%d ", thrd_create(&thread, c11, NULL) == thrd_success);
    printf("%d ", thrd_join(thread, &value) == thrd_success);
    printf("%d ", value);
    thrd_create(&thread, c11, &value);
    thrd_join(thread, &value);
    printf("%d\n", value);
}

/* The streams and the heap are everybody's. */
static void *prints(void *argument)
{
    char *kept[8] = { 0 };
    for (int i = 0; i < 300; i++) {
        free(kept[i % 8]);
        kept[i % 8] = malloc((size_t)(i * 7 % 300 + 20));
        sprintf(kept[i % 8], "%d", i);
        if (i % 100 == 0)
            printf("%s", "x");
    }
    for (int i = 0; i < 8; i++)
        free(kept[i]);
    return NULL;
}
static void together(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, prints, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    puts("");
}

static void *last(void *argument)
{
    usleep(20000);
    puts("the last");
    return NULL;
}
static void at_exit(void) { puts("exit"); }

int main(void)
{
    pthread_t thread;
    counters();
    queues();
    readers_and_writers();
    barriers();
    own_things();
    timeouts();
    detached();
    in_c11s_words();
    together();
    atexit(at_exit);
    pthread_create(&thread, NULL, last, NULL);
    pthread_exit(NULL);
}
