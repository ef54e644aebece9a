/* Restart policies, pools and modules: arguments are three versions of an extension, of which the
 * third has no `which`. */
#include "check.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static pt_module *module;
static int asked;

/* A service finds the domain that calls it, whatever version that is. */
static int ask(void)
{
    asked += 1;
    return pt_service_caller() && pt_domain_user(pt_service_caller()) == &asked ? 10 : 0;
}

static int events[5];
static uint64_t came_back;
static int why;
static int free_at; /* the event at which the module is freed */

static void on_reload(int event, uint64_t version, const pt_fault *fault, void *user)
{
    CHECK(user == events);
    events[event] += 1;
    if (event == PT_ROLLED_BACK) {
        came_back = version;
        why = fault ? fault->kind : 0;
    }
    if (event == free_at) CHECK(pt_module_free(module) == 0);
}

static int refuse(pt_domain *old, pt_domain *new, void *user)
{
    long (*next)(void) = PT_SYM(old, long, next, (void));
    CHECK(next && PT_SYM(new, long, next, (void)) && old != new);
    *(long *)user = next();
    /* How the next version comes may be changed meanwhile. */
    CHECK(pt_module_drain(module, 1000000, 0) == 0 && pt_module_probation(module, 32) == 0);
    return 7;
}

static uint64_t pool_count(pt_pool *pool, int what)
{
    uint64_t value = 99;
    CHECK(pt_pool_count(pool, what, &value) == 0);
    return value;
}

static uint64_t module_count(int what)
{
    uint64_t value = 99;
    CHECK(pt_module_count(module, what, &value) == 0);
    return value;
}

static pt_options *options(void)
{
    pt_options *o = pt_options_new();
    CHECK(o && pt_options_service(o, "ask", (void *)ask, "i()") == 0);
    CHECK(pt_options_user(o, &asked) == 0 && pt_options_deadline(o, 0) == 0);
    CHECK(pt_options_on_reload(o, on_reload, events) == 0);
    return o;
}

static void restarts(pt_image *image)
{
    pt_options *o = options();
    CHECK(pt_options_restart(o, 9) == PT_E_ARGUMENT);
    CHECK(pt_options_restart(o, PT_RESTART_IMMEDIATE) == 0);
    pt_domain *d = pt_domain_new(image, o);
    long (*next)(void) = PT_SYM(d, long, next, (void));
    void (*trap)(void) = PT_SYM(d, void, trap, (void));
    CHECK(next() == 0 && next() == 1);
    trap();
    expect(PT_FAULT_TRAP);
    CHECK(pt_domain_poisoned(d) == 1 && next() == 0 && next() == 1 && !pt_fault_last());
    CHECK(pt_domain_free(d) == 0);

    CHECK(pt_options_back_off(o, 3600000000, 0, 3600000000, 0) == 0);
    d = pt_domain_new(image, o);
    next = PT_SYM(d, long, next, (void));
    trap = PT_SYM(d, void, trap, (void));
    trap();
    expect(PT_FAULT_TRAP);
    CHECK(next() == 0 && pt_error_code() == PT_E_RESTING && strstr(pt_error_message(), "rests"));
    CHECK(pt_domain_reset(d) == 0);
    pt_fault_clear();
    CHECK(next() == 0 && next() == 1 && pt_error_code() == 0);
    CHECK(pt_domain_free(d) == 0 && pt_options_free(o) == 0);
}

static void *borrow(void *pool)
{
    for (int i = 0; i < 50; i++) {
        pt_domain *d = pt_pool_take(pool);
        CHECK(d);
        long (*next)(void) = PT_SYM(d, long, next, (void));
        CHECK(next() == 0 && next() == 1);
        CHECK(pt_pool_put(pool, d) == 0);
    }
    return NULL;
}

static void pools(pt_image *image, pt_image *other)
{
    pt_options *o = options();
    CHECK(pt_options_pool(o, 2, 1, 64) == PT_E_ARGUMENT);
    CHECK(pt_options_pool(o, 2, 1, 0) == 0 && pt_options_pool_wait(o, 0, 0) == 0);
    pt_pool *pool = pt_pool_new(image, o);
    CHECK(pool && pool_count(pool, PT_POOL_MADE) == 1 && pool_count(pool, PT_POOL_SIZE) == 2);
    pt_domain *a = pt_pool_take(pool), *b = pt_pool_take(pool);
    CHECK(a && b && a != b && pt_domain_user(a) == &asked);
    CHECK(!pt_pool_take(pool) && pt_error_code() == PT_E_BUSY);
    int (*serve)(void) = PT_SYM(a, int, serve, (void));
    CHECK(serve() == 11);
    long (*next)(void) = PT_SYM(b, long, next, (void));
    CHECK(pt_pool_put(pool, b) == 0 && pt_pool_put(pool, b) == PT_E_HANDLE && pt_domain_poisoned(b) < 0);
    pt_domain *c = pt_pool_take(pool);
    CHECK(c && c != b && PT_SYM(c, long, next, (void)) == next);
    PT_SYM(c, void, trap, (void))();
    expect(PT_FAULT_TRAP);
    CHECK(pt_pool_put(pool, c) == 0 && pool_count(pool, PT_POOL_RESTARTS) == 1);
    /* One that the host closed is given up. */
    CHECK(pt_domain_free(a) == 0 && pt_pool_put(pool, a) == 0);
    CHECK(pool_count(pool, PT_POOL_ABANDONED) == 1 && pool_count(pool, PT_POOL_IN_USE) == 0);
    CHECK(pt_pool_replace(pool, other, NULL) == PT_E_UNRESOLVED);
    CHECK(pt_pool_replace(pool, other, o) == 0);
    c = pt_pool_take(pool);
    CHECK(PT_SYM(c, int, which, (void))() == 2);
    uint64_t value;
    CHECK(pt_pool_count(pool, 11, &value) == PT_E_ARGUMENT && pt_pool_count(pool, -1, &value) == PT_E_ARGUMENT);
    CHECK(pt_pool_free(pool) == 0 && pt_pool_free(pool) == PT_E_HANDLE && !pt_pool_take(pool));
    CHECK(PT_SYM(c, int, which, (void))() == 2);
    CHECK(pt_pool_put(pool, c) == 0);

    CHECK(pt_options_pool(o, 2, 2, PT_POOL_PER_THREAD) == 0 && pt_options_pool_wait(o, 60000000, 100) == 0);
    pool = pt_pool_new(image, o);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, borrow, pool) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(pool_count(pool, PT_POOL_TAKEN) == 200 && pool_count(pool, PT_POOL_IDLE) == 2);
    a = pt_pool_take(pool);
    pid_t child = fork();
    if (child == 0) {
        b = pt_pool_take(pool);
        _exit(a && b && PT_SYM(b, long, next, (void))() == 0 && pt_pool_put(pool, a) == 0 ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(pt_pool_put(pool, a) == 0 && pt_pool_free(pool) == 0);
    CHECK(pt_options_free(o) == 0);
}

static void modules(pt_image *one, pt_image *two, pt_image *lacks)
{
    pt_options *o = options();
    module = pt_module_new(one, o);
    CHECK(module && pt_options_free(o) == 0);
    int (*which)(void) = PT_MODULE_SYM(module, int, which, (void));
    long (*next)(void) = PT_MODULE_SYM(module, long, next, (void));
    int (*serve)(void) = pt_module_sym(module, "serve", "i()");
    void (*trap)(void) = PT_MODULE_SYM(module, void, trap, (void));
    CHECK(which && next && serve && trap && which == PT_MODULE_SYM(module, int, which, (void)));
    CHECK(!PT_MODULE_SYM(module, int, witch, (void)) && strstr(pt_error_message(), "`which`"));
    CHECK(which() == 1 && next() == 0 && next() == 1 && serve() == 11);

    /* What does not fit changes nothing. */
    CHECK(pt_module_replace(module, lacks) == PT_E_MISSING && strstr(pt_error_message(), "`which`"));
    long seen = -1;
    CHECK(pt_module_hand_over(module, refuse, &seen) == 0);
    CHECK(pt_module_replace(module, two) == PT_E_HAND_OVER && strstr(pt_error_message(), "returned 7") && seen == 2);
    CHECK(which() == 1 && next() == 3 && module_count(PT_MODULE_REFUSED) == 2);

    /* With its state; a fault brings the old one back. */
    CHECK(pt_module_carry(module, "save", "load", 64) == 0 && pt_module_replace(module, two) == 0);
    CHECK(which() == 2 && next() == 4 && serve() == 12 && module_count(PT_MODULE_ON_PROBATION) == 29);
    CHECK(pt_domain_user(pt_module_domain(module)) == &asked);
    trap();
    expect(PT_FAULT_TRAP);
    CHECK(which() == 1 && next() == 4 && serve() == 11);
    CHECK(events[PT_ROLLED_BACK] == 1 && came_back == 1 && why == PT_FAULT_TRAP && events[PT_REPLACED] == 1);

    CHECK(pt_module_probation(module, 0) == 0 && pt_module_drain(module, 1000, 1) == 0);
    CHECK(pt_module_replace(module, two) == 0 && which() == 2 && next() == 5);
    CHECK(pt_module_roll_back(module) == 0 && module_count(PT_MODULE_DRAINING) == 0);
    CHECK(pt_module_probation(module, 5) == 0 && pt_module_hand_over(module, NULL, NULL) == 0);
    CHECK(pt_module_replace(module, one) == 0 && pt_module_roll_back(module) == 1 && which() == 2);
    CHECK(pt_module_replace(module, one) == 0 && pt_module_confirm(module) == 0 && which() == 1);
    CHECK(events[PT_CONFIRMED] == 1 && module_count(PT_MODULE_VERSION) == 5);

    pid_t child = fork();
    if (child == 0)
        _exit(which() == 1 && pt_module_replace(module, two) == 0 && which() == 2 ? 0 : 1);
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0 && which() == 1);

    CHECK(pt_module_free(module) == 0 && pt_module_free(module) == PT_E_HANDLE);
    pt_fault_clear();
    CHECK(which() == 0 && pt_error_code() == PT_E_CLOSED);
}

static int frees(pt_domain *old, pt_domain *new, void *user)
{
    long (*next)(void) = PT_SYM(new, long, next, (void));
    CHECK(old && next && !user && pt_module_free(module) == 0 && next() == 0);
    return 0;
}

/* Freed by each of the functions that are told about it. */
static void freed_inside(pt_image *one, pt_image *two)
{
    for (int how = 0; how <= PT_ROLLED_BACK; how++) {
        pt_options *o = options();
        module = pt_module_new(one, o);
        CHECK(module && pt_options_free(o) == 0);
        int (*which)(void) = PT_MODULE_SYM(module, int, which, (void));
        void (*trap)(void) = PT_MODULE_SYM(module, void, trap, (void));
        CHECK(which && trap && which() == 1 && pt_module_probation(module, 3) == 0);
        pt_domain *domain = pt_module_domain(module);
        free_at = how;
        if (how == 0) CHECK(pt_module_hand_over(module, frees, NULL) == 0);
        pt_module_replace(module, two);
        if (how == PT_CONFIRMED) CHECK(pt_module_confirm(module) == 0);
        if (how == PT_ROLLED_BACK) {
            trap();
            expect(PT_FAULT_TRAP);
        }
        free_at = 0;
        CHECK(pt_module_free(module) == PT_E_HANDLE && pt_domain_poisoned(domain) == PT_E_HANDLE);
        pt_fault_clear();
        CHECK(which() == 0 && pt_error_code() == PT_E_CLOSED);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    pt_image *one = pt_image_load(argv[1]), *two = pt_image_load(argv[2]), *lacks = pt_image_load(argv[3]);
    CHECK(one && two && lacks);
    restarts(one);
    pools(one, two);
    modules(one, two, lacks);
    freed_inside(one, two);
    return 0;
}
