/* A slice ends at each instruction of a call of an extension, of its service and its peer, one after the other; then the same with a
   signal that comes there, whose handler calls, too. And calls where no page is left. On one processor, where all is counted. */
#include <exos/extension.h>
#include <exos/process.h>
#include <exos/yield.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The processor's slices that ended, by the kernel's books, and how long one is. */
#define TICKS (*(volatile uint64_t *)(0x7f8000000000 + 64))
#define SLICE (*(volatile uint64_t *)(0x7f8000000000 + 32))
#define PROCESSORS (*(volatile uint32_t *)(0x7f8000000000 + 8))

static int failed;
static pt_domain *domain, *other;
static int (*next)(void), (*call_other)(int), (*spin)(int), (*big)(int);
static long (*ask)(long, long);
/* Calls of the program's, and of handlers; each counts its own, since one comes in the middle of the other. */
static volatile int made, made_by_handlers, refused, alarms;

static void is(const char *what, long found, long expected)
{
    if (found != expected) {
        printf("%s: %ld, not %ld\n", what, found, expected);
        failed = 1;
    }
}

static long host_add(long a, long b) { return a + b; }

static void on_alarm(int number)
{
    (void)number;
    alarms++;
    pt_fault_clear();
    if (next())
        made_by_handlers++;
    else
        refused += pt_fault_last() && pt_error_code() == PT_E_INSIDE;
}

/* So many instructions and a few. */
static void wait_instructions(uint64_t count)
{
    uint64_t pairs = count / 2;
    if (count % 2)
        __asm__ volatile("nop");
    __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(pairs));
}

static void call_next(void)
{
    made++;
    is("next", next(), made);
}

static void call_service(void) { is("ask", ask(20, 1), 42); }
static void call_peer(void) { is("call_other", call_other(5), 6); }

/* At how many instructions of a call a slice ended. */
static int step(void (*call)(void))
{
    int inside = 0;
    /* From before the call on, each time one instruction earlier. */
    for (uint64_t less = 0; less < (alarms ? 500 : 4000); less++) {
        exos_yield();
        uint64_t begin = TICKS;
        wait_instructions(SLICE - 200 - less);
        uint64_t before = TICKS;
        call();
        uint64_t after = TICKS;
        if (before == begin && after == before && alarms == 0)
            break;
        inside += before == begin && after != before;
    }
    return inside;
}

static void steps(const char *what, void (*call)(void))
{
    int inside = step(call);
    if (inside < 40) {
        printf("%s: slices ended at %d instructions\n", what, inside);
        failed = 1;
    }
}

/* With a signal at each end of a slice. */
static void call_next_somehow(void)
{
    int before = made + made_by_handlers, got = next();
    made++;
    if (got <= before || got > made + made_by_handlers) {
        printf("next: %d, not above %d and up to %d\n", got, before, made + made_by_handlers);
        failed = 1;
    }
}

static void all_pages_are_gone(void)
{
    int status = -1, child = fork();
    if (child == 0) {
        char *block;
        exos_limit(EXOS_LIMIT_PAGES, 700);
        while ((block = malloc(4096)))
            *(volatile char *)block = 1;
        pt_fault_clear();
        int result = big(70000);
        /* It may be that there were enough; otherwise the call ends, and says so. */
        if (pt_fault_last())
            printf("without pages: %s\n", pt_fault_last()->message);
        fflush(stdout);
        _exit(result == 1 || pt_fault_last() ? 0 : 1);
    }
    waitpid(child, &status, 0);
    printf("without pages: %#x\n", status);
    pt_fault_clear();
    is("beside it", ask(1, 1), 4);
    if (pt_fault_last())
        printf("beside it: %s\n", pt_fault_last()->message);
}

int main(void)
{
    pt_image *image = pt_image_load("wrong.px");
    pt_options *options = pt_options_new();
    pt_options_service(options, "host_add", (void *)host_add, "l(ll)");
    pt_options_peer_open(options, "other");
    pt_options_deadline(options, 100000);
    domain = image ? pt_domain_new(image, options) : NULL;
    other = image ? pt_domain_new(image, options) : NULL;
    if (!domain || !other || pt_domain_bind_peer(domain, "other", other, "add_one", 0, 0)) {
        printf("wrong.px: %s\n", pt_error_message());
        return 1;
    }
    next = PT_SYM(domain, int, "i()", next, (void));
    ask = PT_SYM(domain, long, "l(ll)", ask, (long, long));
    call_other = PT_SYM(domain, int, "i(i)", call_other, (int));
    spin = PT_SYM(domain, int, "i(i)", spin, (int));
    big = PT_SYM(domain, int, "i(i)", big, (int));
    call_next();
    call_service();
    call_peer();
    if (PROCESSORS == 1) {
        steps("next", call_next);
        steps("a service", call_service);
        steps("a peer", call_peer);
        signal(SIGALRM, on_alarm);
        ualarm(700, 700);
        steps("next, with signals", call_next_somehow);
        steps("a service, with signals", call_service);
        steps("a peer, with signals", call_peer);
        ualarm(0, 0);
        is("no call was lost", next(), made + made_by_handlers + 1);
        if (!alarms || !refused) {
            printf("alarms: %d, refused inside: %d\n", alarms, refused);
            failed = 1;
        }
    }
    /* The time of a call that another one has made is its own, and its caller's. */
    pt_domain_bind_peer(domain, "other", other, "spin", 5000, 0);
    pt_fault_clear();
    is("a peer without end", call_other(1) >= 1000, 1);
    is("its caller goes on", pt_fault_last() == NULL || pt_fault_last()->kind == PT_FAULT_DEADLINE, 1);
    pt_domain_bind_peer(domain, "other", other, "spin", 0, 0);
    pt_domain_reset(other);
    call_other(1);
    is("both end", pt_fault_last() ? pt_fault_last()->kind : 0, PT_FAULT_DEADLINE);
    is("reset", pt_domain_reset(other) | pt_domain_reset(domain), 0);
    is("a call after all", ask(1, 1), 4);
    all_pages_are_gone();
    puts(failed ? "extension-step: failed" : "extension-step: all held");
    return failed;
}
