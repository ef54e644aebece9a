/* Leaving a service by longjmp over the call that led to it, closing and resetting from inside,
 * fork. */
#define _GNU_SOURCE
#include "check.h"
#include <setjmp.h>
#include <sys/wait.h>
#include <unistd.h>

static jmp_buf out;
static pt_domain *domain;
static long (*add)(int, int);
static int (*twice_plus)(int), (*load)(pt_offset);
static int mode;

static __attribute__((noinline)) void out_of_inner(void)
{
    CHECK(pt_thread_nesting() == 1);
    mode = 1;
    if (!setjmp(out)) twice_plus(1);
    CHECK(pt_thread_nesting() == 2 && pt_thread_unwind(1) == 0 && pt_thread_nesting() == 1 && pt_service_caller() == domain);
}

static int leaving(int x)
{
    switch (mode) {
    case 1: longjmp(out, 1);
    case 2: CHECK(add(1, 2) == 3); longjmp(out, 1);
    case 3: CHECK(pt_service_caller() == domain && pt_domain_free(pt_service_caller()) == 0 && !pt_service_caller()); return x;
    case 5: out_of_inner(); return x;
    case 4: twice_plus(x); return x; /* calls itself until it nests too deeply */
    }
    return 2 * x;
}

/* Calls from deeper stacks than the one that was left. */
static __attribute__((noinline)) long deep(int n)
{
    volatile char room[512];
    room[0] = 1;
    if (n == 0) return add(1, 1) + twice_plus(0) + room[0];
    return deep(n - 1) + room[0] - 1;
}

static void get(void)
{
    add = PT_SYM(domain, long, add, (int, int));
    twice_plus = PT_SYM(domain, int, twice_plus, (int));
    load = PT_SYM(domain, int, load, (pt_offset));
    CHECK(add && twice_plus && load);
}

int main(int argc, char **argv)
{
    (void)argc;
    pt_options *options = kit_options();
    CHECK(pt_options_service(options, "twice", (void *)leaving, "i(i)") == 0);
    pt_image *image = pt_image_load(argv[1]);
    domain = pt_domain_new(image, options);
    CHECK(domain);
    get();
    for (int i = 0; i < 2000; i++) {
        mode = i % 2 + 1;
        if (!setjmp(out)) {
            twice_plus(1);
            CHECK(!"came back");
        }
        mode = 0;
        CHECK(add(i, 2) == i + 2 && twice_plus(4) == 9 && deep(20) == 4);
    }
    mode = 1;
    if (!setjmp(out)) twice_plus(1);
    mode = 0;
    CHECK(load(8) == 0);
    expect(PT_FAULT_NULL_POINTER);
    CHECK(pt_domain_reset(domain) == 0 && twice_plus(4) == 9);
    /* Reset right after a leap: nobody is inside once Postern knows. */
    mode = 1;
    if (!setjmp(out)) twice_plus(1);
    CHECK(pt_thread_unwind(0) == 0 && pt_thread_nesting() == 0 && pt_domain_reset(domain) == 0);
    if (!setjmp(out)) twice_plus(1);
    CHECK(pt_thread_unwind(0) == 0 && !pt_service_caller() && pt_error_code() == PT_E_OUTSIDE);
    /* Out of the inner of two services, into the outer one. */
    mode = 5;
    CHECK(twice_plus(4) == 5 && pt_thread_nesting() == 0);
    mode = 0;
    CHECK(twice_plus(4) == 9);

    mode = 4;
    pt_fault_clear();
    twice_plus(1);
    CHECK(pt_fault_last() && pt_error_code() == PT_E_LIMIT);
    mode = 0;
    CHECK(pt_domain_reset(domain) == 0);

    /* A child has the domain, too. */
    pt_fault_clear();
    pid_t child = fork();
    if (child == 0) {
        CHECK(add(2, 3) == 5 && twice_plus(4) == 9 && load(8) == 0);
        expect(PT_FAULT_NULL_POINTER);
        CHECK(pt_domain_reset(domain) == 0 && add(2, 3) == 5);
        void (*spin)(void) = PT_SYM(kit_domain(argv[1], 20000), void, spin, (void));
        spin(); /* the child has a watchdog of its own */
        expect(PT_FAULT_DEADLINE);
        pt_domain *second = pt_domain_new(image, options);
        CHECK(second && pt_domain_free(second) == 0 && pt_domain_free(domain) == 0);
        _exit(7);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK(!pt_domain_poisoned(domain) && add(2, 3) == 5);

    mode = 3;
    pt_fault_clear();
    CHECK(twice_plus(1) == 0 && pt_fault_last());
    pt_fault_clear();
    CHECK(add(1, 2) == 0 && pt_error_code() == PT_E_CLOSED);
    return 0;
}
