/* Many threads: in one domain, closing it under others, interrupting, forking while others open and
 * close. */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 6 };
static const char *path;
static pt_image *image;
static pt_domain *shared_domain;
static long (*add)(int, int);
static int (*twice_plus)(int);
static atomic_int inside, stop;

static void *calling(void *unused)
{
    (void)unused;
    for (int i = 0; i < 5000; i++) CHECK(add(i, 1) == i + 1 && twice_plus(i) == 2 * i + 1 && !pt_fault_last());
    return NULL;
}

static void *spinning(void *function)
{
    void (*spin)(void) = (void (*)(void))function;
    inside++;
    /* A call that comes while a reset looks whether anybody is inside is refused. */
    do {
        pt_fault_clear();
        spin();
        CHECK(pt_fault_last());
    } while (pt_fault_last()->kind == PT_FAULT_REFUSED && pt_error_code() == PT_E_BUSY);
    return (void *)(long)pt_fault_last()->kind;
}

/* Calls until the domain is closed. Closed is all that a call may find. */
static void *until_closed(void *unused)
{
    (void)unused;
    inside++;
    for (int i = 0;; i++) {
        int result = twice_plus(i);
        if (pt_fault_last()) {
            int code = pt_error_code();
            CHECK(result == 0 && (code == PT_E_CLOSED || pt_fault_last()->kind == PT_FAULT_ANOTHER_THREAD));
            if (code == PT_E_CLOSED) return NULL;
            pt_fault_clear();
        } else CHECK(result == 2 * i + 1);
    }
}

static void *opening(void *unused)
{
    (void)unused;
    while (!stop) {
        pt_options *options = kit_options();
        pt_domain *domain = pt_domain_new(image, options);
        CHECK(domain && pt_domain_user(domain) == NULL && pt_domain_free(domain) == 0 && pt_options_free(options) == 0);
    }
    return NULL;
}

static void start(pthread_t *threads, void *(*body)(void *), void *argument)
{
    inside = 0;
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, body, argument) == 0);
}

static void join(pthread_t *threads, long kind)
{
    for (int i = 0; i < THREADS; i++) {
        void *result;
        CHECK(pthread_join(threads[i], &result) == 0 && (long)result == kind);
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    pthread_t threads[THREADS];
    path = argv[1];
    image = pt_image_load(path);
    shared_domain = kit_domain(path, 0);
    add = PT_SYM(shared_domain, long, add, (int, int));
    twice_plus = PT_SYM(shared_domain, int, twice_plus, (int));
    void *spin = pt_domain_sym(shared_domain, "spin", "v()");
    start(threads, calling, NULL);
    join(threads, 0);

    /* Interrupted again and again until all have been inside and have left. */
    start(threads, spinning, spin);
    while (inside < THREADS) usleep(100);
    CHECK(pt_domain_reset(shared_domain) == PT_E_BUSY || pt_domain_interrupt(shared_domain) == 0);
    for (int left = 0; left < THREADS;) {
        CHECK(pt_domain_interrupt(shared_domain) == 0);
        if (pthread_tryjoin_np(threads[left], &spin) == 0) {
            CHECK((long)spin == PT_FAULT_INTERRUPTED);
            left++;
        }
    }
    CHECK(!pt_domain_poisoned(shared_domain) && add(1, 2) == 3);

    /* Closed under its callers, many times. */
    for (int round = 0; round < 20; round++) {
        start(threads, until_closed, NULL);
        while (inside < THREADS) usleep(100);
        CHECK(pt_domain_free(shared_domain) == 0);
        join(threads, 0);
        shared_domain = kit_domain(path, 0);
        add = PT_SYM(shared_domain, long, add, (int, int));
        twice_plus = PT_SYM(shared_domain, int, twice_plus, (int));
    }

    /* Children work, whatever other threads were doing. */
    start(threads, opening, NULL);
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(30);
            CHECK(add(i, 1) == i + 1);
            pt_domain *own = kit_domain(path, 0);
            CHECK(own && pt_domain_free(own) == 0 && pt_domain_free(shared_domain) == 0);
            _exit(0);
        }
        int status;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    stop = 1;
    join(threads, 0);
    CHECK(add(1, 2) == 3 && pt_domain_free(shared_domain) == 0);
    return 0;
}
