/* Events: timers, descriptors, ends of children, doorbells; attached threads, and what handlers do
 * for them. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <signal.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNTIL(condition) while (!(condition)) sched_yield()

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    pt_image *image = pt_image_load(argv[1]);
    pt_options *options = pt_options_new();
    CHECK(image && pt_options_deadline(options, 0) == 0);
    CHECK(pt_options_way(options, 4, 0) == PT_E_ARGUMENT && pt_options_way(options, PT_WAY_BEST, 100) == PT_E_ARGUMENT);
    CHECK(pt_options_way(options, PT_WAY_BEST, 0) == 0);
    pt_domain *domain = pt_domain_new(image, options);
    CHECK(domain);
    unsigned long (*calls)(void) = PT_SYM(domain, unsigned long, calls_of, (void));
    unsigned long (*total)(void) = PT_SYM(domain, unsigned long, total_of, (void));
    long (*last)(void) = (long (*)(void))PT_SYM(domain, unsigned long, last_of, (void));
    char text[400];
    int way = pt_domain_way(domain, text, sizeof text);
    CHECK(way >= PT_WAY_CURRENT && way <= PT_WAY_PLAIN && text[0]);
    puts(text);
    CHECK(pt_thread_wait(0) == PT_E_MISSING && pt_thread_detach() == PT_E_MISSING);
    CHECK(pt_thread_attach(domain, 2) == PT_E_ARGUMENT);
    int mine = pt_thread_attach(domain, 0);
    CHECK(mine == 0 && pt_thread_attach(domain, 0) == PT_E_BUSY);

    pt_subscription *tick = pt_domain_on_timer(domain, 1000000, 1000000, "on");
    CHECK(tick && pt_subscription_number(tick) == 0 && pt_subscription_priority(tick, 3) == 0);
    CHECK(pt_subscription_priority(tick, 256) == PT_E_ARGUMENT && pt_subscription_doorbell(tick) == PT_E_ARGUMENT);
    UNTIL(calls() >= 5);
    UNTIL(pt_subscription_count(tick, PT_EVENT_BY_CURRENT) + pt_subscription_count(tick, PT_EVENT_BY_DISPATCHER) >= 5);
    CHECK(pt_subscription_count(tick, PT_EVENT_SKIPPED) == 0 && pt_subscription_count(tick, 6) == PT_E_ARGUMENT);
    CHECK(pt_subscription_free(tick) == 0 && pt_subscription_free(tick) == PT_E_HANDLE);
    CHECK(pt_domain_reset(domain) == 0);

    pt_subscription *bell = pt_domain_on_doorbell(domain, "on");
    int ring = pt_subscription_doorbell(bell);
    uint64_t five = 5;
    CHECK(ring >= 0 && write(ring, &five, sizeof five) == sizeof five);
    UNTIL(total() == 5);
    CHECK(close(ring) == 0 && pt_subscription_free(bell) == 0);

    int ends[2];
    CHECK(pipe(ends) == 0);
    pt_subscription *readable = pt_domain_on_fd(domain, ends[0], PT_READABLE, "on");
    CHECK(readable && !pt_domain_on_fd(domain, ends[0], 3, "on") && !pt_domain_on_fd(domain, 999, PT_READABLE, "on"));
    CHECK(close(ends[0]) == 0 && write(ends[1], "x", 1) == 1);
    UNTIL(calls() == 2);
    CHECK(last() == 1 && pt_subscription_free(readable) == 0 && close(ends[1]) == 0);

    pid_t child = fork();
    if (!child) {
        pause();
        _exit(0);
    }
    pt_subscription *end = pt_domain_on_end(domain, (uint32_t)child, "on");
    CHECK(end && kill(child, SIGKILL) == 0);
    UNTIL(calls() == 3);
    CHECK(last() == ((long)CLD_KILLED << 32 | SIGKILL) && waitpid(child, NULL, 0) == child);
    CHECK(pt_subscription_free(end) == 0);

    pt_shared *area = pt_shared_new(2 * 4096);
    pt_offset offset = area ? pt_domain_expose(domain, area, PT_READ_ONLY) : 0;
    CHECK(offset && !pt_domain_on_missing_pages(domain, NULL, "fills") && pt_error_code() == PT_E_HANDLE);
    pt_subscription *fills = pt_domain_on_missing_pages(domain, area, "fills");
    CHECK(fills || pt_error_code() == PT_E_SYSTEM);
    if (fills) {
        const volatile char *page = (const char *)pt_shared_address(area) + 4096;
        CHECK(*page == (char)(offset / 4096 + 1) && last() == 0);
        CHECK(!pt_domain_on_missing_pages(domain, area, "fills") && pt_error_code() == PT_E_BUSY);
        CHECK(pt_subscription_free(fills) == 0);
    }
    CHECK(pt_domain_withdraw(domain, area) == 0 && pt_shared_free(area) == 0);

    CHECK(!pt_domain_on_send(domain, "calls_of") && pt_error_code() == PT_E_SIGNATURE);
    CHECK(!pt_domain_on_send(domain, "nothing") && pt_error_code() == PT_E_MISSING);
    CHECK(!pt_domain_on_signal(domain, SIGUSR1, "on") && pt_error_code() == PT_E_ARGUMENT);
    CHECK(!pt_domain_on_pressure(domain, "/none", 1, 2, "on") && pt_error_code() == PT_E_SYSTEM);
    pt_subscription *on = pt_domain_on_send(domain, "on"), *wakes = pt_domain_on_send(domain, "wakes");
    pt_subscription *sends = pt_domain_on_send(domain, "sends"), *nices = pt_domain_on_send(domain, "nices");
    CHECK(on && wakes && sends && nices);
    CHECK(pt_thread_send((uint32_t)pt_subscription_number(wakes), (uint64_t)mine) == 0);
    CHECK(pt_thread_wait(60000000) == 1 && pt_thread_wait(0) == 0);
    CHECK(pt_thread_send((uint32_t)pt_subscription_number(sends), (uint64_t)pt_subscription_number(on)) == 0);
    CHECK(last() == 9 && calls() == 4);
    CHECK(pt_thread_send((uint32_t)pt_subscription_number(nices), 5) == 0 && (int)last() == -EPERM);
    CHECK(pt_thread_detach() == 0 && pt_thread_attach(domain, PT_ATTACH_NICENESS) == 0);
    CHECK(pt_thread_send((uint32_t)pt_subscription_number(nices), 19) == 0 && last() == 0);
    CHECK(getpriority(PRIO_PROCESS, 0) == 19 && pt_thread_send(63, 0) == PT_E_MISSING);

    /* Whatever is left goes with what it belongs to. */
    CHECK(pt_domain_free(domain) == 0 && pt_thread_send((uint32_t)pt_subscription_number(on), 1) == 0);
    CHECK(pt_subscription_free(on) == 0 && pt_subscription_free(wakes) == 0 && pt_subscription_free(sends) == 0);
    CHECK(pt_image_free(image) == 0 && pt_options_free(options) == 0);
    return 0;
}
