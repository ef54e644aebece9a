/* Signals of the host beside Postern's: handlers chain, storms do no harm, calls from handlers and
 * with blocked signals are refused with the reason. */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static pt_domain *domain, *hurried;
static long (*add)(int, int);
static int (*twice_plus)(int), (*load)(pt_offset);
static void (*spin)(void);

static sigjmp_buf out;
static volatile sig_atomic_t own_faults, alarms, refused;

/* Installed before Postern starts: its own faults still reach it. */
static void own_handler(int signal, siginfo_t *info, void *context)
{
    (void)context;
    CHECK(signal == SIGSEGV && info->si_addr == (void *)0x7f0000001234);
    own_faults++;
    siglongjmp(out, 1);
}

static void own_fault(void)
{
    if (!sigsetjmp(out, 1)) *(volatile int *)0x7f0000001234 = 1;
}

static void on_alarm(int signal)
{
    (void)signal;
    alarms++;
}

/* A handler that calls an extension is refused, whatever it interrupted. */
static void calling(int signal)
{
    (void)signal;
    alarms++;
    /* Between a call's end and its caller it would replace what the end left, as with errno. */
    if (!pt_thread_nesting()) return;
    long sum = add(1, 2);
    if (sum == 0) refused++;
    else abort();
}

static void storm(void (*handler)(int), int microseconds)
{
    struct sigaction action = {0};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval often = {{0, microseconds}, {0, microseconds}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
}

static void calm(void)
{
    struct itimerval never = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

static void *with_blocked(void *unused)
{
    (void)unused;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    CHECK(add(1, 2) == 0 && pt_error_code() == PT_E_SIGNAL_BLOCKED && strstr(pt_error_message(), "SIGSEGV"));
    CHECK(pt_fault_last()->kind == PT_FAULT_REFUSED && strstr(pt_fault_last()->message, "pthread_sigmask"));
    CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
    pt_fault_clear();
    CHECK(add(1, 2) == 3 && !pt_fault_last());
    return NULL;
}

static void *with_replaced(void *unused)
{
    (void)unused;
    CHECK(add(1, 2) == 0 && pt_error_code() == PT_E_HANDLER_REPLACED && strstr(pt_error_message(), "SIGFPE"));
    return NULL;
}

static void *with_rearmed(void *unused)
{
    (void)unused;
    CHECK(add(1, 2) == 3 && load(8) == 0);
    expect(PT_FAULT_NULL_POINTER);
    CHECK(pt_domain_reset(domain) == 0 && add(1, 2) == 3);
    return NULL;
}

static void in_thread(void *(*body)(void *))
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, body, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv)
{
    (void)argc;
    struct sigaction action = {0};
    action.sa_sigaction = own_handler;
    action.sa_flags = SA_SIGINFO;
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    pt_config config = {.size = sizeof config, .flags = PT_ADOPT_HANDLERS};
    CHECK(pt_init(&config) == 0);
    domain = kit_domain(argv[1], 0);
    add = PT_SYM(domain, long, add, (int, int));
    twice_plus = PT_SYM(domain, int, twice_plus, (int));
    load = PT_SYM(domain, int, load, (pt_offset));
    hurried = kit_domain(argv[1], 20000);
    spin = PT_SYM(hurried, void, spin, (void));

    for (int i = 0; i < 5; i++) {
        own_fault();
        CHECK(own_faults == i + 1 && add(2, 3) == 5 && load(8) == 0);
        expect(PT_FAULT_NULL_POINTER);
        CHECK(pt_domain_reset(domain) == 0);
    }

    /* Alarms at any instruction: results stay right, faults stay faults. */
    storm(on_alarm, 50);
    for (int i = 0; alarms < 400; i++) {
        CHECK(add(i, 3) == i + 3 && twice_plus(i) == 2 * i + 1);
        if (i % 1000 == 0) {
            CHECK(load(8) == 0);
            expect(PT_FAULT_NULL_POINTER);
            CHECK(pt_domain_reset(domain) == 0);
        }
    }
    calm();

    /* Calls from a handler. */
    alarms = 0;
    storm(calling, 200);
    while (alarms < 50 || refused < 5) {
        pt_fault_clear();
        spin(); /* until its deadline: the handler meets it inside */
        CHECK(pt_fault_last() && pt_fault_last()->kind == PT_FAULT_DEADLINE);
        CHECK(pt_domain_reset(hurried) == 0);
    }
    calm();
    pt_fault_clear();
    CHECK(add(2, 3) == 5);

    in_thread(with_blocked);
    signal(SIGFPE, SIG_DFL);
    in_thread(with_replaced);
    CHECK(pt_rearm() == 0);
    in_thread(with_rearmed);

    /* One without SA_ONSTACK is adopted at the next thread's first call. */
    struct sigaction plain = {0};
    plain.sa_handler = on_alarm;
    CHECK(sigaction(SIGUSR1, &plain, NULL) == 0);
    in_thread(with_rearmed);
    CHECK(sigaction(SIGUSR1, NULL, &plain) == 0 && (plain.sa_flags & SA_ONSTACK) && plain.sa_handler == on_alarm);
    return 0;
}
