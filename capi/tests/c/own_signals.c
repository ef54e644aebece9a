/* A host that owns the handlers and passes signals on. */
#define _GNU_SOURCE
#include "check.h"
#include <setjmp.h>
#include <signal.h>

static int passed_on;
static sigjmp_buf out;

static void handler(int signal, siginfo_t *info, void *context)
{
    if (pt_handle_signal(signal, info, context)) {
        passed_on++;
        return;
    }
    siglongjmp(out, 1);
}

int main(int argc, char **argv)
{
    (void)argc;
    pt_config config = {0};
    config.size = sizeof config;
    config.flags = PT_NO_HANDLERS | PT_NO_HOT_WINDOW;
    config.signal = SIGUSR2;
    CHECK(pt_init(&config) == 0);
    struct sigaction action = {0};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGUSR2};
    for (int i = 0; i < 6; i++) CHECK(sigaction(signals[i], &action, NULL) == 0);

    pt_domain *domain = kit_domain(argv[1], 0);
    int (*load)(pt_offset) = PT_SYM(domain, int, load, (pt_offset));
    pt_domain *hurried = kit_domain(argv[1], 20000);
    void (*spin)(void) = PT_SYM(hurried, void, spin, (void));
    int (*recurse)(int) = PT_SYM(domain, int, recurse, (int));
    CHECK(load(8) == 0 && passed_on == 1);
    expect(PT_FAULT_NULL_POINTER);
    CHECK(pt_domain_reset(domain) == 0);
    spin();
    expect(PT_FAULT_DEADLINE);
    CHECK(passed_on >= 2 && pt_domain_reset(domain) == 0 && recurse(1) == 0);
    expect(PT_FAULT_CONTROL_STACK_OVERFLOW);
    volatile int came_back = 0;
    if (!sigsetjmp(out, 1)) *(volatile int *)0x7f0000001234 = 1;
    else came_back = 1;
    CHECK(came_back);
    return 0;
}
