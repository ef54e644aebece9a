/* A host whose signal handlers set a flag only, and that leaves what it does by longjmp; once with
 * Postern's handlers, once with its own. */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int pending;
static volatile int cancelled, looked, mine;
static sigjmp_buf out;
static pt_domain *other;
static long (*add)(int, int);
static pthread_t host;

static void on_alarm(int signal)
{
    (void)signal;
    cancelled = 1;
    pending = 1;
}

static void on_usr1(int signal)
{
    (void)signal;
    mine = pt_interrupt_mine();
}

/* What such hosts have at their own safe points. */
static int look(void *context)
{
    CHECK(context == &pending);
    looked++;
    CHECK(add(2, 3) == 5);
    if (looked % 5 != 0)
        return 0;           /* not now: asked again */
    pending = 0;
    if (!cancelled)
        return 0;
    cancelled = 0;
    siglongjmp(out, 1);
}

static int ends(void *context)
{
    (void)context;
    pending = 0;
    return 1;
}

static void *sends(void *signal)
{
    usleep(10000);
    pthread_kill(host, (int)(long)signal);
    return NULL;
}

static void soon(int signal)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, sends, (void *)(long)signal) == 0 && pthread_detach(thread) == 0);
}

static void own(int signal, siginfo_t *info, void *context)
{
    CHECK(pt_handle_signal(signal, info, context) == 1 || signal == SIGUSR2);
}

static void serve(const char *path, int owns)
{
    pt_config config = {.size = sizeof config, .flags = owns ? PT_NO_HANDLERS : 0};
    config.signal = SIGUSR2;
    CHECK(pt_init(&config) == 0);
    int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGUSR2};
    struct sigaction action = {.sa_sigaction = own, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (int i = 0; owns && i < 6; i++) CHECK(sigaction(signals[i], &action, NULL) == 0);
    action = (struct sigaction){.sa_handler = on_alarm, .sa_flags = SA_ONSTACK | SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    action.sa_handler = on_usr1;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    host = pthread_self();

    pt_domain *domain = kit_domain(path, 0);
    other = kit_domain(path, 0);
    void (*spin)(void) = PT_SYM(domain, void, spin, (void));
    add = PT_SYM(other, long, add, (int, int));
    int (*twice_plus)(int) = PT_SYM(domain, int, twice_plus, (int));
    CHECK(spin && twice_plus && add);

    CHECK(pt_set_safe_point(&pending, NULL, NULL) == PT_E_ARGUMENT);
    CHECK(pt_set_safe_point((const volatile int *)((const char *)&pending + 1), look, NULL) == PT_E_ARGUMENT);
    CHECK(pt_set_safe_point(&pending, look, (void *)&pending) == 0);
    for (volatile int i = 0; i < 5; i++) {
        looked = 0;
        if (!sigsetjmp(out, 1)) {
            soon(SIGALRM);
            spin();
            CHECK(!"it came back");
        }
        CHECK(pt_thread_unwind(0) == 0);
        CHECK(looked == 5 && twice_plus(4) == 9 && !pt_fault_last());
    }
    CHECK(pt_set_safe_point(&pending, ends, NULL) == 0);
    soon(SIGALRM);
    spin();
    expect(PT_FAULT_INTERRUPTED);
    CHECK(pt_domain_reset(domain) == 0);

    CHECK(pt_set_safe_point(NULL, NULL, NULL) == 0);
    pending = 1;
    CHECK(pt_interrupt_mine() == 0);
    soon(SIGUSR1);
    spin();
    expect(PT_FAULT_INTERRUPTED);
    CHECK(mine == 1 && pt_domain_reset(domain) == 0 && twice_plus(4) == 9);
}

int main(int argc, char **argv)
{
    (void)argc;
    for (int owns = 0; owns < 2; owns++) {
        pid_t child = fork();
        if (child == 0) {
            serve(argv[1], owns);
            _exit(0);
        }
        int status;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    return 0;
}
