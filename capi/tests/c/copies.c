/* Two copies of the library in one process, opened at run time: each opens domains, calls and
 * faults, in turn and nested. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <postern.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition) \
    do { if (!(condition)) { fprintf(stderr, "%d: %s\n", __LINE__, #condition); exit(1); } } while (0)

struct copy {
    pt_image *(*image_load)(const char *);
    pt_options *(*options_new)(void);
    int (*options_deadline)(pt_options *, uint64_t);
    int (*options_service)(pt_options *, const char *, void *, const char *);
    pt_domain *(*domain_new)(pt_image *, pt_options *);
    int (*domain_reset)(pt_domain *);
    int (*domain_free)(pt_domain *);
    void *(*domain_sym)(pt_domain *, const char *, const char *);
    const pt_fault *(*fault_last)(void);
    void (*fault_clear)(void);
    const char *(*error_message)(void);
    void *library;
    pt_domain *domain, *hurried;
    long (*add)(int, int);
    int (*twice_plus)(int), (*load)(pt_offset), (*recurse)(int);
    void (*spin)(void);
};
static struct copy a, b;

static double scale(double x) { return x; }
static void note(pt_offset text) { (void)text; }
static _Bool judge(_Bool x) { return x; }
static int depth;

/* A service of one copy calls into the other, which faults at the bottom; the outer calls go on. */
static int nested(int x, struct copy *other)
{
    if (depth < 6) {
        depth++;
        int below = other->twice_plus(x);
        depth--;
        return below;
    }
    CHECK(other->add(x, 1) == x + 1);
    CHECK(other->load(8) == 0 && other->fault_last()->kind == PT_FAULT_NULL_POINTER);
    other->fault_clear();
    return x;
}
static int from_a(int x) { return nested(x, &b); }
static int from_b(int x) { return nested(x, &a); }

static void open_copy(struct copy *c, const char *library, const char *image, int (*service)(int))
{
    c->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!c->library) fprintf(stderr, "%s\n", dlerror());
    CHECK(c->library);
#define GET(name) CHECK((c->name = dlsym(c->library, "pt_" #name)))
    GET(image_load); GET(options_new); GET(options_deadline); GET(options_service); GET(domain_new); GET(domain_reset); GET(domain_free); GET(domain_sym);
    GET(fault_last); GET(fault_clear); GET(error_message);
    pt_options *o = c->options_new();
    CHECK(o && c->options_deadline(o, 0) == 0);
    CHECK(c->options_service(o, "twice", (void *)service, "i(i)") == 0);
    CHECK(c->options_service(o, "scale", (void *)scale, "d(d)") == 0);
    CHECK(c->options_service(o, "note", (void *)note, "v(p)") == 0);
    CHECK(c->options_service(o, "judge", (void *)judge, "z(z)") == 0);
    pt_image *i = c->image_load(image);
    if (!i) fprintf(stderr, "%s\n", c->error_message());
    CHECK(i);
    c->domain = c->domain_new(i, o);
    if (!c->domain) fprintf(stderr, "%s\n", c->error_message());
    CHECK(c->domain);
    c->add = c->domain_sym(c->domain, "add", PT_SIGNATURE(long, (int, int)));
    c->twice_plus = c->domain_sym(c->domain, "twice_plus", PT_SIGNATURE(int, (int)));
    c->load = c->domain_sym(c->domain, "load", PT_SIGNATURE(int, (pt_offset)));
    c->recurse = c->domain_sym(c->domain, "recurse", PT_SIGNATURE(int, (int)));
    /* Only this one has a deadline: a busy machine must not end other calls. */
    CHECK(c->options_deadline(o, 30000) == 0);
    c->hurried = c->domain_new(i, o);
    CHECK(c->hurried);
    c->spin = c->domain_sym(c->hurried, "spin", PT_SIGNATURE(void, (void)));
    CHECK(c->add && c->twice_plus && c->load && c->recurse && c->spin);
}

static void fault(struct copy *c, int kind)
{
    switch (kind) {
    case PT_FAULT_NULL_POINTER: CHECK(c->load(8) == 0); break;
    case PT_FAULT_CONTROL_STACK_OVERFLOW: CHECK(c->recurse(1) == 0); break;
    case PT_FAULT_DEADLINE: c->spin(); break;
    }
    CHECK(c->fault_last() && c->fault_last()->kind == kind);
    c->fault_clear();
    CHECK(c->domain_reset(kind == PT_FAULT_DEADLINE ? c->hurried : c->domain) == 0);
}

static void *worker(void *unused)
{
    (void)unused;
    for (int i = 0; i < 1000; i++) CHECK(a.add(i, 1) == i + 1 && b.add(i, 2) == i + 2);
    return NULL;
}

int main(int argc, char **argv)
{
    (void)argc;
    open_copy(&a, argv[2], argv[1], from_a);
    CHECK(a.add(2, 3) == 5);
    fault(&a, PT_FAULT_NULL_POINTER);
    open_copy(&b, argv[3], argv[1], from_b);
    CHECK(a.domain_sym != b.domain_sym);
    for (int i = 0; i < 3; i++) {
        CHECK(a.add(2, 3) == 5 && b.add(4, 5) == 9);
        fault(&b, PT_FAULT_NULL_POINTER);
        fault(&a, PT_FAULT_NULL_POINTER);
        fault(&a, PT_FAULT_CONTROL_STACK_OVERFLOW);
        fault(&b, PT_FAULT_CONTROL_STACK_OVERFLOW);
        fault(&b, PT_FAULT_DEADLINE);
        fault(&a, PT_FAULT_DEADLINE);
    }
    for (int i = 0; i < 10; i++) {
        /* a, b, a, b … seven deep; the innermost poisons b's domain, whose outer calls end when
         * they are back with 0, to which a's add 1. */
        int result = a.twice_plus(100);
        CHECK(result == 1 && !a.fault_last() && b.fault_last()->kind == PT_FAULT_ANOTHER_THREAD);
        a.fault_clear();
        b.fault_clear();
        CHECK(a.domain_reset(a.domain) == 0 && b.domain_reset(b.domain) == 0);
        depth = 5;
        CHECK(a.twice_plus(100) == 0 && a.fault_last()->kind == PT_FAULT_ANOTHER_THREAD);
        depth = 0;
        a.fault_clear();
        CHECK(a.domain_reset(a.domain) == 0 && b.domain_reset(b.domain) == 0);
    }
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, worker, NULL) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    /* Unloading leaves the code where it is, for handlers and function pointers lead there. */
    CHECK(a.domain_free(a.domain) == 0 && dlclose(a.library) == 0 && dlclose(b.library) == 0);
    CHECK(a.add(2, 3) == 0 && b.add(4, 5) == 9);
    fault(&b, PT_FAULT_NULL_POINTER);
    return 0;
}
