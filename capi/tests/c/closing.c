/* Every function of the host's that the library calls, and every way in which it may end the domain
 * whose call led there, on this thread and on another one. What is freed is overwritten and never
 * given out again, so a use after the end shows. */
#define _GNU_SOURCE
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

void __libc_free(void *block);
static int guarding;
static atomic_int freed;

void free(void *block)
{
    if (!guarding || !block) {
        __libc_free(block);
        return;
    }
    memset(block, 0xdd, malloc_usable_size(block));
    freed++;
}

enum way { CLOSE, MODULE, POOL, NAMESPACE, WAYS };
enum who { SERVICE, DECIDER_SERVICE, DECIDER_CALL, POLICY, INPUT, OUTPUT, ERROR, FAULT, KINDS };

static pt_image *images[3];
static enum way way;
static pt_domain *domain;
static pt_module *module;
static pt_pool *pool;
static pt_namespace *space;
static int on_another_thread, acted, reached_end;

static void *end(void *unused)
{
    (void)unused;
    switch (way) {
    case CLOSE: CHECK(pt_domain_free(domain) == 0 && pt_domain_free(domain) == PT_E_HANDLE); break;
    case MODULE: CHECK(pt_module_free(module) == 0); break;
    case POOL: CHECK(pt_pool_free(pool) == 0 && pt_pool_put(pool, domain) == 0); break;
    case NAMESPACE: CHECK(pt_namespace_free(space) == 0); break;
    default: CHECK(!"a way");
    }
    return NULL;
}

static pthread_t ender;
static int inside; /* whether the function that acts is called from within the extension's call */

static void act(void)
{
    if (acted++) return;
    if (!on_another_thread) {
        end(NULL);
    } else {
        CHECK(pthread_create(&ender, NULL, end, NULL) == 0);
        if (!inside) return;
        /* Closed, and waiting for this call. */
        while (pt_service_caller()) sched_yield();
    }
    /* The call goes on in the host for a while, and asks things. */
    pt_domain *other = pt_domain_new(images[2], kit_options());
    CHECK(other);
    long (*add)(int, int) = PT_SYM(other, long, add, (int, int));
    CHECK(add && add(1, 2) == 3 && pt_domain_free(other) == 0);
    CHECK(!inside || !pt_service_caller());
    reached_end++;
}

static int serve(int x) { act(); return x; }
static int plain(int x) { return 2 * x; }
static int decide(void *user, pt_question *question)
{
    CHECK(user == &acted && question->domain);
    act();
    CHECK(question->domain[0]);
    return PT_ALLOW;
}
static int custom(void *user, pt_call *call)
{
    CHECK(user == &acted);
    act();
    call->result = 5;
    return PT_EMULATE;
}
static size_t input(void *user, void *to, size_t room)
{
    CHECK(user == &acted);
    act();
    memset(to, 'x', room);
    return room;
}
static void output(void *user, const void *bytes, size_t len)
{
    CHECK(user == &acted);
    act();
    CHECK(len == 3 && !memcmp(bytes, "abc", 3));
}
static void faulted(const pt_fault *fault, void *user)
{
    CHECK(user == &acted);
    act();
    CHECK(fault->kind == PT_FAULT_TRAP && fault->message[0]);
}

static pt_options *options_of(enum who who)
{
    pt_options *o = who == FAULT ? kit_options() : pt_options_new();
    CHECK(o && pt_options_deadline(o, 0) == 0);
    if (who != FAULT) CHECK(pt_options_service(o, "twice", who == SERVICE ? (void *)serve : (void *)plain, "i(i)") == 0);
    pt_policy *policy = pt_policy_compute();
    CHECK(policy);
    switch (who) {
    case DECIDER_SERVICE:
    case DECIDER_CALL: CHECK(pt_options_decider(o, decide, &acted) == 0); break;
    case POLICY: CHECK(pt_policy_custom(policy, custom, &acted) == 0); break;
    case INPUT: CHECK(pt_policy_stdin(policy, input, &acted) == 0); break;
    case OUTPUT: CHECK(pt_policy_stdout(policy, output, &acted) == 0); break;
    case ERROR: CHECK(pt_policy_stderr(policy, output, &acted) == 0); break;
    case FAULT: CHECK(pt_options_on_fault(o, faulted, &acted) == 0); break;
    default: break;
    }
    CHECK(pt_options_policy(o, policy) == 0 && pt_policy_free(policy) == 0);
    return o;
}

static void *symbol(const char *name, const char *types)
{
    if (way == MODULE) return pt_module_sym(module, name, types);
    if (way == NAMESPACE) return pt_namespace_sym(space, name, types);
    return pt_domain_sym(domain, name, types);
}

static void once(enum who who)
{
    pt_options *o = options_of(who);
    pt_image *image = images[who <= DECIDER_CALL ? 0 : who == FAULT ? 2 : 1];
    module = NULL, pool = NULL, space = NULL, acted = reached_end = 0, inside = who != FAULT;
    switch (way) {
    case CLOSE: domain = pt_domain_new(image, o); break;
    case MODULE: domain = (module = pt_module_new(image, o)) ? pt_module_domain(module) : NULL; break;
    case POOL: domain = (pool = pt_pool_new(image, o)) ? pt_pool_take(pool) : NULL; break;
    default: domain = (space = pt_namespace_new(image, o, 0, 0)) ? pt_namespace_domain(space) : NULL;
    }
    CHECK(domain && pt_options_free(o) == 0);
    pt_fault_clear();
    long answer = 0;
    if (who == FAULT) {
        void (*trap)(void) = way == NAMESPACE ? pt_domain_sym(domain, "trap", "v()") : symbol("trap", "v()");
        CHECK(trap);
        trap();
        CHECK(pt_fault_last() && pt_fault_last()->kind == PT_FAULT_TRAP && pt_fault_report()[0]);
    } else if (who <= DECIDER_SERVICE) {
        int (*ask)(int) = pt_domain_sym(domain, "ask", "i(i)");
        if (way == MODULE) ask = symbol("ask", "i(i)");
        CHECK(ask);
        answer = ask(21);
    } else if (who == DECIDER_CALL) {
        long (*call)(long) = pt_domain_sym(domain, "call", "l(l)");
        CHECK(call);
        answer = call(SYS_getpid);
    } else {
        long (*sys)(long, long, long, long, long, long) = pt_domain_sym(domain, "call", "l(llllll)");
        pt_offset (*place)(void) = pt_domain_sym(domain, "memory", "p()");
        CHECK(sys && place);
        pt_offset memory = place();
        CHECK(memory && pt_domain_write(domain, memory, "abc", 3) == 0);
        switch (who) {
        case POLICY: answer = sys(SYS_getpid, 0, 0, 0, 0, 0); break;
        case INPUT: answer = sys(SYS_read, 0, memory, 3, 0, 0); break;
        case OUTPUT: answer = sys(SYS_write, 1, memory, 3, 0, 0); break;
        default: answer = sys(SYS_write, 2, memory, 3, 0, 0);
        }
    }
    /* The call did not return into a domain that is closed. */
    CHECK(acted == 1 && answer == 0 && pt_fault_last() && pt_thread_nesting() == 0);
    CHECK(reached_end == 1 || (!inside && on_another_thread));
    if (on_another_thread) CHECK(pthread_join(ender, NULL) == 0);
    CHECK(pt_domain_poisoned(domain) == PT_E_HANDLE);
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    for (int i = 0; i < 3; i++) CHECK((images[i] = pt_image_load(argv[i + 1])));
    guarding = 1;
    for (on_another_thread = 0; on_another_thread < 2; on_another_thread++)
        for (way = CLOSE; way < WAYS; way++)
            for (int who = SERVICE; who < KINDS; who++) once(who);
    CHECK(atomic_load(&freed) > 1000);
    return 0;
}
