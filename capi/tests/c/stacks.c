/* Stacks that are not a thread's own: coroutines without a guard below, threads without a guard. A
 * runaway recursion is a fault there, too, and nothing beside the stack is touched. */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { SIZE = 64 << 10, CANARY = 0x5a };
static pt_domain *domain;
static long (*add)(int, int);
static int (*recurse)(int), (*twice_plus)(int), (*load)(pt_offset);
static long (*nine)(long, long, long, long, long, long, long, long, long);
static ucontext_t main_context, coroutine;
static int ran, nested_here;

static void all(void)
{
    for (int i = 0; i < 100; i++) CHECK(add(i, 1) == i + 1);
    CHECK(nine(1, 2, 3, 4, 5, 6, 7, 8, 9) == 99);
    CHECK(twice_plus(20) == 41);
    CHECK(load(8) == 0);
    expect(PT_FAULT_NULL_POINTER);
    CHECK(pt_domain_reset(domain) == 0);
    CHECK(recurse(1) == 0);
    expect(PT_FAULT_CONTROL_STACK_OVERFLOW);
    CHECK(pt_domain_reset(domain) == 0 && add(1, 2) == 3);
    ran++;
}

static void body(void)
{
    all();
    swapcontext(&coroutine, &main_context);
    all();
}

/* Two coroutines on one piece of memory, the lower one full of canaries. */
static void on_coroutine(void (*function)(void))
{
    unsigned char *memory = malloc(2 * SIZE);
    memset(memory, CANARY, 2 * SIZE);
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = memory + SIZE;
    coroutine.uc_stack.ss_size = SIZE;
    coroutine.uc_link = &main_context;
    makecontext(&coroutine, function, 0);
    swapcontext(&main_context, &coroutine);
    if (function == body) {
        CHECK(add(40, 2) == 42);
        swapcontext(&main_context, &coroutine);
    }
    for (int i = 0; i < SIZE; i++) CHECK(memory[i] == CANARY);
    free(memory);
}

static void *on_thread(void *unused)
{
    (void)unused;
    all();
    return NULL;
}

/* A service that switches to a coroutine which calls in again. */
static void nested(void)
{
    nested_here++;
    all();
}
static ucontext_t service_context;
static int switching(int x)
{
    if (nested_here) return 2 * x;
    unsigned char *memory = malloc(SIZE);
    ucontext_t inner;
    getcontext(&inner);
    inner.uc_stack.ss_sp = memory;
    inner.uc_stack.ss_size = SIZE;
    inner.uc_link = &service_context;
    static pt_options *options;
    options = kit_options();
    pt_domain *outer = domain;
    (void)outer;
    makecontext(&inner, nested, 0);
    swapcontext(&service_context, &inner);
    free(memory);
    pt_options_free(options);
    return 2 * x;
}

static void symbols(pt_domain *of)
{
    domain = of;
    add = PT_SYM(domain, long, add, (int, int));
    recurse = PT_SYM(domain, int, recurse, (int));
    twice_plus = PT_SYM(domain, int, twice_plus, (int));
    load = PT_SYM(domain, int, load, (pt_offset));
    nine = PT_SYM(domain, long, nine, (long, long, long, long, long, long, long, long, long));
    CHECK(add && recurse && twice_plus && load && nine);
}

int main(int argc, char **argv)
{
    (void)argc;
    symbols(kit_domain(argv[1], 0));
    on_coroutine(body);
    CHECK(ran == 2);

    /* A thread without a guard, on memory of ours. */
    unsigned char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    memset(memory, CANARY, 512 << 10);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstack(&attributes, memory + (512 << 10), 512 << 10) == 0);
    CHECK(pthread_create(&thread, &attributes, on_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    for (int i = 0; i < 512 << 10; i++) CHECK(memory[i] == CANARY);
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setguardsize(&attributes, 0) == 0);
    CHECK(pthread_create(&thread, &attributes, on_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(ran == 4);

    /* A nested call of another domain from a coroutine inside a service. */
    pt_options *options = kit_options();
    CHECK(pt_options_service(options, "twice", (void *)switching, "i(i)") == 0);
    pt_image *image = pt_image_load(argv[1]);
    pt_domain *outer = pt_domain_new(image, options);
    CHECK(outer);
    int (*through)(int) = PT_SYM(outer, int, twice_plus, (int));
    CHECK(through(20) == 41 && nested_here == 1 && ran == 5);
    nested_here = 0;
    on_coroutine(body);
    CHECK(ran == 7 && through(20) == 41 && ran == 8);
    return 0;
}
