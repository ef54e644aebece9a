/* Random sequences of making, using and giving back, over handles of several kinds: by one thread,
 * which knows of each handle whether it is live, and by several at once, which do not. Then forks,
 * while other threads change what the child uses. */
#include "check.h"
#include <pthread.h>
#include <postern-filter.h>
#include <postern-modules.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum kind { IMAGE, OPTIONS, POLICY, DOMAIN, SHARED, POOL, MODULE, NAMESPACE, FILTER, SET, KINDS };
enum { SLOTS = 6, STEPS = 4000, RACING = 1500, THREADS = 3 };

/* Handles, live and given back. `live` is what one thread knows; nobody knows it of several. */
static struct slot {
    _Atomic(void *) handle;
    int live;
} slots[KINDS][SLOTS];
static const char *file;
static int alone;
static _Thread_local uint64_t random_state;

static unsigned below(unsigned n)
{
    random_state = random_state * 6364136223846793005 + 1442695040888963407;
    return (unsigned)(random_state >> 33) % n;
}

/* A slot of any kind, seldom: a handle of the wrong kind. */
static struct slot *pick(enum kind kind)
{
    return &slots[below(40) ? kind : below(KINDS)][below(SLOTS)];
}

static int is_live(const struct slot *slot, enum kind kind)
{
    return slot >= slots[kind] && slot < slots[kind] + SLOTS && slot->live;
}

/* The same, where NULL is something, too. */
static int is_live_or_null(const struct slot *slot, enum kind kind)
{
    return !slot->handle || is_live(slot, kind);
}

/* What comes of a call with a handle: live ones are not refused as handles, others are. A service
 * may give back whatever there is, so a slot is asked before the call. */
static void judge_code(int code, int live)
{
    CHECK(code != PT_E_PANIC);
    if (alone)
        CHECK((code == PT_E_HANDLE) == !live);
}

static void judge_pointer(const void *made, int live)
{
    CHECK(made || pt_error_code() != PT_OK);
    judge_code(made ? 0 : pt_error_code(), live);
}

static int (*const frees[KINDS])() = {
    [IMAGE] = (int (*)())pt_image_free,   [OPTIONS] = (int (*)())pt_options_free,
    [POLICY] = (int (*)())pt_policy_free, [DOMAIN] = (int (*)())pt_domain_free,
    [SHARED] = (int (*)())pt_shared_free, [POOL] = (int (*)())pt_pool_free,
    [MODULE] = (int (*)())pt_module_free, [NAMESPACE] = (int (*)())pt_namespace_free,
    [FILTER] = (int (*)())pt_filter_free, [SET] = (int (*)())pt_filter_set_free,
};

static void give_back(enum kind kind)
{
    struct slot *slot = pick(kind);
    int live = is_live(slot, kind), code = frees[kind](slot->handle);
    judge_code(code, live);
    if (code == PT_OK && live) slot->live = 0;
}

/* A service that gives back what it is in the middle of, and things that it is not. */
static int twice_and_free(int x)
{
    if (below(6) == 0) {
        CHECK(pt_service_caller() || pt_error_code() == PT_E_CLOSED);
        give_back(below(2) ? DOMAIN : (enum kind)below(KINDS));
    }
    return 2 * x;
}

static int any(void *user, pt_question *question)
{
    CHECK(user == file && question->domain);
    if (below(16) == 0) give_back(POLICY);
    return below(8) ? PT_ALLOW : 1;
}

static void *make_options(void)
{
    pt_options *options = kit_options();
    CHECK(pt_options_service(options, "twice", (void *)twice_and_free, "i(i)") == 0);
    CHECK(pt_options_pool(options, 2, below(3), below(4)) == 0 && pt_options_pool_wait(options, 100, 8) == 0);
    CHECK(pt_options_restart(options, below(2)) == 0);
    return options;
}

/* Makes one of a kind; `live`: what it needs is. */
static void *make(enum kind kind, int *live)
{
    struct slot *image = pick(IMAGE), *options = pick(OPTIONS);
    int both = is_live(image, IMAGE) && is_live_or_null(options, OPTIONS);
    uint64_t at;
    *live = 1;
    switch (kind) {
    case IMAGE: return pt_image_load(file);
    case OPTIONS: return make_options();
    case POLICY: return below(2) ? pt_policy_compute() : pt_policy_none();
    case DOMAIN: *live = both; return pt_domain_new(image->handle, options->handle);
    case SHARED: return pt_shared_new(1 + below(9000));
    case POOL: *live = both; return pt_pool_new(image->handle, options->handle);
    case MODULE: *live = both; return pt_module_new(image->handle, options->handle);
    case NAMESPACE: return pt_namespace_new(NULL, NULL, PT_RECOVER_DEFAULT, PT_USE_GENERAL);
    case FILTER: return pt_filter_new(below(2) ? "tcp port 80" : "udp", &at);
    default: return pt_filter_set_new();
    }
}

static void replace_slot(enum kind kind)
{
    struct slot *slot = &slots[kind][below(SLOTS)];
    void *before = atomic_exchange(&slot->handle, NULL);
    if (alone) judge_code(frees[kind](before), slot->live);
    else frees[kind](before);
    int live;
    void *made = make(kind, &live);
    judge_pointer(made, live);
    slot->live = made != NULL;
    /* What another thread has put there meanwhile stays without a name, and is nobody's. */
    slot->handle = made;
}

/* Function pointers, also to domains that are gone. */
static _Atomic(void *) pointers[16];

static void call_pointer(void)
{
    int (*twice_plus)(int) = pointers[below(16)];
    if (!twice_plus) return;
    pt_fault_clear();
    int result = twice_plus(20);
    /* 1 where a decider denied the service. */
    CHECK(pt_fault_last() ? result == 0 : result == 41 || result == 1);
}

static const unsigned char packet[60] = { [12] = 8, [14] = 0x45, [23] = 6 };

static void use_domain(struct slot *slot, int live)
{
    struct slot *other = pick(SHARED);
    int both = live && is_live(other, SHARED);
    char bytes[64];
    void *made;
    pt_offset place;
    switch (below(9)) {
    case 0:
        made = PT_SYM(slot->handle, int, twice_plus, (int));
        judge_pointer(made, live);
        if (made) pointers[below(16)] = made;
        break;
    case 1: judge_code(pt_domain_reset(slot->handle), live); break;
    case 2: judge_code(pt_domain_interrupt(slot->handle), live); break;
    case 3: judge_code(pt_domain_read(slot->handle, below(1u << 31), bytes, sizeof bytes), live); break;
    case 4:
        place = pt_domain_expose(slot->handle, other->handle, PT_READ_ONLY);
        judge_code(place ? 0 : pt_error_code(), both);
        break;
    case 5: judge_code(pt_domain_withdraw(slot->handle, other->handle), both); break;
    case 6: judge_code(pt_domain_set_decider(slot->handle, below(2) ? any : NULL, (void *)file), live); break;
    case 7:
        other = pick(POLICY);
        judge_code(pt_domain_set_policy(slot->handle, other->handle), live && is_live_or_null(other, POLICY));
        break;
    default: judge_code(pt_domain_set_placement(slot->handle, below(3)), live);
    }
}

static void use_pool(struct slot *slot, int live)
{
    uint64_t count;
    pt_domain *lent[2];
    switch (below(4)) {
    case 0: judge_code(pt_pool_count(slot->handle, below(11), &count), live); break;
    case 1: {
        struct slot *image = pick(IMAGE), *options = pick(OPTIONS);
        int all = live && is_live(image, IMAGE) && is_live_or_null(options, OPTIONS);
        judge_code(pt_pool_replace(slot->handle, image->handle, options->handle), all);
        break;
    }
    default: {
        void *pool = slot->handle;
        for (int i = 0; i < 2; i++) {
            judge_pointer(lent[i] = pt_pool_take(pool), live);
            int (*twice_plus)(int) = lent[i] ? (int (*)(int))PT_SYM(lent[i], int, twice_plus, (int)) : NULL;
            if (twice_plus) twice_plus(1);
            if (lent[i] && below(8) == 0) pt_domain_free(lent[i]);
            /* A service may have freed it. */
            live = is_live(slot, POOL);
        }
        for (int i = 0; i < 2; i++) {
            if (!lent[i]) continue;
            /* Of a pool that was freed meanwhile, too; and once only. */
            int code = pt_pool_put(pool, lent[i]);
            CHECK(code == PT_OK && pt_pool_put(pool, lent[i]) == PT_E_HANDLE);
        }
    }
    }
}

static int hand_over(pt_domain *from, pt_domain *to, void *user)
{
    CHECK(user == file && (from != to || !from));
    if (below(4) == 0) give_back(MODULE);
    return (int)below(2);
}

static void use_module(struct slot *slot, int live)
{
    struct slot *image = pick(IMAGE);
    void *module = slot->handle;
    switch (below(5)) {
    case 0: {
        void *made = PT_MODULE_SYM(module, int, twice_plus, (int));
        judge_pointer(made, live);
        if (made) pointers[below(16)] = made;
        break;
    }
    case 1: judge_code(pt_module_hand_over(module, below(2) ? hand_over : NULL, (void *)file), live); break;
    case 2: judge_code(pt_module_probation(module, below(3)), live); break;
    case 3: judge_code(pt_module_roll_back(module), live); break;
    default:
        judge_code(pt_module_drain(module, 100, below(2)), live);
        judge_code(pt_module_replace(module, image->handle), live && is_live(image, IMAGE));
    }
}

static void use_namespace(struct slot *slot, int live)
{
    static const char *const sources[] = { "int f(int x) { return x + 1; }", "int g(int x) { return x; }" };
    uint64_t argument = 6, result = 0;
    void *space = slot->handle;
    switch (below(4)) {
    case 0: judge_code(pt_namespace_create(space, "unit", sources[below(2)]), live); break;
    case 1: judge_code(pt_namespace_delete(space, below(2) ? "f" : "g"), live); break;
    case 2: judge_code(pt_namespace_collect(space), live); break;
    default: {
        uint64_t f = pt_namespace_lookup(space, "f");
        judge_code(f ? 0 : pt_error_code(), live);
        if (f && pt_namespace_call(space, f, &argument, 1, &result) == 0) CHECK(result == 7);
    }
    }
}

static void use(enum kind kind)
{
    struct slot *slot = pick(kind), *other = pick(FILTER);
    int live = is_live(slot, kind);
    char text[256];
    switch (kind) {
    case IMAGE: judge_code(pt_image_bounded(slot->handle, 0, 0, NULL, NULL), live); break;
    case OPTIONS:
        other = pick(POLICY);
        judge_code(pt_options_policy(slot->handle, other->handle), live && is_live_or_null(other, POLICY));
        break;
    case POLICY: judge_code(pt_policy_stream(slot->handle, 1, PT_DISCARD), live); break;
    case DOMAIN: use_domain(slot, live); break;
    case SHARED: judge_code(pt_shared_read(slot->handle, below(9000), text, 1), live); break;
    case POOL: use_pool(slot, live); break;
    case MODULE: use_module(slot, live); break;
    case NAMESPACE: use_namespace(slot, live); break;
    case FILTER: judge_code((int)pt_filter_run(slot->handle, packet, sizeof packet, sizeof packet), live); break;
    default:
        switch (below(3)) {
        case 0: {
            int both = live && is_live(other, FILTER);
            judge_code((int)pt_filter_set_add(slot->handle, other->handle, 1, below(9), 1), both);
            break;
        }
        case 1: judge_code((int)pt_filter_set_find(slot->handle, packet, sizeof packet, sizeof packet), live); break;
        default: judge_code((int)pt_filter_set_show(slot->handle, text, sizeof text), live);
        }
    }
}

static void step(void)
{
    enum kind kind = (enum kind)below(KINDS);
    unsigned what = below(10);
    if (what < 2) replace_slot(kind);
    else if (what == 2) give_back(kind);
    else if (what < 5) call_pointer();
    else use(kind);
}

static void *race(void *seed)
{
    random_state = (uintptr_t)seed;
    for (int i = 0; i < RACING; i++) step();
    return NULL;
}

/* ---- Forks ---------------------------------------------------------------------------------- */

static pt_options *shared_options;
static pt_policy *shared_policy;
static pt_domain *shared_domain;
static atomic_int stop;

static void *changes(void *unused)
{
    while (!stop) {
        CHECK(pt_options_name(shared_options, "again") == 0);
        CHECK(pt_options_policy(shared_options, shared_policy) == 0);
        CHECK(pt_policy_stream(shared_policy, 1, PT_DISCARD) == 0);
        CHECK(PT_SYM(shared_domain, long, add, (int, int)));
    }
    return unused;
}

/* Whatever other threads of the parent's were changing, the child finds it whole, and waits for
 * nobody. */
static void children_find_all_whole(void)
{
    pthread_t threads[2];
    pt_image *image = pt_image_load(file);
    shared_options = kit_options();
    shared_policy = pt_policy_compute();
    shared_domain = pt_domain_new(image, shared_options);
    CHECK(image && shared_domain);
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, changes, NULL) == 0);
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            pt_domain *own = pt_domain_new(image, shared_options);
            CHECK(own && pt_domain_set_policy(own, shared_policy) == 0);
            long (*add)(int, int) = PT_SYM(shared_domain, long, add, (int, int));
            CHECK(add && add(i, 1) == i + 1 && pt_domain_free(own) == 0);
            _exit(0);
        }
        int status;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    stop = 1;
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    file = argv[1];
    alarm(300);
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
    fprintf(stderr, "seed %#llx\n", (unsigned long long)seed);

    random_state = seed;
    alone = 1;
    for (int i = 0; i < STEPS; i++) step();

    alone = 0;
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, race, (void *)(seed + i + 1)) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);

    /* Nothing of it hinders what is made now. */
    pt_domain *domain = kit_domain(file, 0);
    long (*add)(int, int) = PT_SYM(domain, long, add, (int, int));
    CHECK(add && add(1, 2) == 3 && pt_domain_free(domain) == 0);

    children_find_all_whole();
    return 0;
}
