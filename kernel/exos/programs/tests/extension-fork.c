/* Extensions in processes that are copies, and signals that come while one runs. */
#include <exos/extension.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int failed;
static pt_domain *domain;
static volatile int alarms, refused;

static void is(const char *what, long found, long expected)
{
    if (found != expected) {
        printf("%s: %ld, not %ld\n", what, found, expected);
        failed = 1;
    }
}

static long host_add(long a, long b) { return a + b; }

/* A handler that interrupts an extension calls one: that is refused, and the extension goes on. */
static void on_alarm(int number)
{
    (void)number;
    alarms++;
    PT_SYM(domain, int, "i()", next, (void))();
    refused += pt_fault_last() && pt_error_code() == PT_E_INSIDE;
}

int main(void)
{
    pt_image *image = pt_image_load("wrong.px");
    pt_options *options = pt_options_new();
    pt_options_service(options, "host_add", (void *)host_add, "l(ll)");
    pt_options_peer_open(options, "other");
    pt_options_deadline(options, 1500000);
    domain = image ? pt_domain_new(image, options) : NULL;
    if (!domain) {
        printf("wrong.px: %s\n", pt_error_message());
        return 1;
    }
    int (*next)(void) = PT_SYM(domain, int, "i()", next, (void));
    is("the first call", next(), 1);
    int child = fork();
    if (child == 0) {
        /* Its own copy, which it may spoil. */
        is("the copy's call", next(), 2);
        PT_SYM(domain, int, "i(I)", read_at, (unsigned))(0x100);
        is("the copy's fault", pt_fault_last() ? pt_fault_last()->kind : 0, PT_FAULT_NULL_POINTER);
        is("the copy's reset", pt_domain_reset(domain), 0);
        is("the copy's call", next(), 1);
        PT_SYM(domain, int, "i(i)", spin, (int))(1);
        is("the copy's loop", pt_fault_last() ? pt_fault_last()->kind : 0, PT_FAULT_DEADLINE);
        fflush(stdout);
        _exit(failed);
    }
    int status = -1;
    is("wait", waitpid(child, &status, 0), child);
    is("the copy", status, 0);
    is("a call beside it", next(), 2);

    signal(SIGALRM, on_alarm);
    alarm(1);
    PT_SYM(domain, int, "i(i)", spin, (int))(1);
    is("a loop with alarms", pt_fault_last() ? pt_fault_last()->kind : 0, PT_FAULT_DEADLINE);
    is("an alarm came", alarms, 1);
    is("its call is refused", refused, 1);
    is("reset", pt_domain_reset(domain), 0);
    is("a call after all", next(), 1);
    puts(failed ? "extension-fork: failed" : "extension-fork: all held");
    return failed;
}
