/* A pool of sandbox threads: handlers that have to wait go on there, and functions that the
 * extension spawns are called; what waits is void after a reset, and the threads go with the domain. */
#define _GNU_SOURCE
#include "check.h"
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#define UNTIL(condition) while (!(condition)) sched_yield()

static pthread_t host;
static atomic_int calls, here, held;

/* Waits while it is to, and is never called by the thread that was interrupted. */
static int tell(int number)
{
    if (pthread_equal(pthread_self(), host)) here++;
    calls++;
    while (held) usleep(100);
    return number + 1;
}

static pt_domain *make(pt_image *image, uint32_t threads)
{
    pt_options *options = pt_options_new();
    CHECK(pt_options_service(options, "told", (void *)tell, "i(i)") == 0);
    CHECK(pt_options_deadline(options, 0) == 0 && pt_options_sandbox_threads(options, threads) == 0);
    pt_domain *domain = pt_domain_new(image, options);
    CHECK(domain && pt_options_free(options) == 0);
    return domain;
}

static pt_counters counters(pt_domain *domain)
{
    pt_counters counters = {.size = sizeof counters};
    CHECK(pt_domain_counters(domain, &counters) == 0);
    return counters;
}

/* Threads of the process. */
static int tasks(void)
{
    int count = 0;
    DIR *all = opendir("/proc/self/task");
    CHECK(all);
    for (struct dirent *task; (task = readdir(all));) count += task->d_name[0] != '.';
    closedir(all);
    return count;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    host = pthread_self();
    pt_image *image = pt_image_load(argv[1]);
    CHECK(image);
    pt_domain *without = make(image, 0);
    int (*spawn)(int) = PT_SYM(without, int, spawn, (int));
    CHECK(spawn(1) == -ENOSYS && pt_domain_free(without) == 0);
    int before = tasks();

    pt_domain *domain = make(image, 2);
    spawn = PT_SYM(domain, int, spawn, (int));
    unsigned (*done)(void) = PT_SYM(domain, unsigned, done_of, (void));
    for (int k = 0; k < 10; k++) CHECK(spawn(k) == 0);
    UNTIL(done() == 10);
    CHECK(counters(domain).spawned == 10 && counters(domain).promoted == 0);

    /* Sent to this thread, whose handler goes on on another one. */
    pt_subscription *on = pt_domain_on_send(domain, "on");
    CHECK(on && pt_thread_attach(domain, 0) >= 0);
    uint32_t event = (uint32_t)pt_subscription_number(on);
    for (unsigned k = 1; k <= 5; k++) {
        CHECK(pt_thread_send(event, k) == 0);
        UNTIL(done() == 10 + k);
    }
    CHECK(counters(domain).promoted == 5 && counters(domain).resumed == 5 && here == 0);

    /* As many as there are threads wait in the service, the others for a thread. */
    held = 1;
    calls = 0;
    for (int k = 0; k < 6; k++) CHECK(spawn(k) == 0);
    UNTIL(calls == 2);
    pt_counters now = counters(domain);
    CHECK(now.busy == 2 && now.longest >= 4 && now.full == 0);
    int refused = 0;
    while (spawn(0) == 0) CHECK(++refused < 100);
    CHECK(spawn(0) == -EAGAIN && counters(domain).full >= 1);
    held = 0;
    UNTIL(counters(domain).busy == 0 && calls == 6 + refused);

    CHECK(pt_subscription_free(on) == 0 && pt_thread_detach() == 0);
    CHECK(pt_domain_reset(domain) == 0 && done() == 0 && spawn(3) == 0);
    UNTIL(done() == 1);
    CHECK(!pt_fault_last() && pt_domain_free(domain) == 0 && pt_image_free(image) == 0);
    UNTIL(tasks() <= before);
    return 0;
}
