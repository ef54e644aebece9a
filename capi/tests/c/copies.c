/* Two copies of the library in one process, opened at run time: each opens domains, calls and faults, in turn and nested. */
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
    int (*service)(pt_options *, const char *, void *, const char *);
    pt_domain *(*open)(pt_image *, pt_options *);
    int (*reset)(pt_domain *);
    int (*close)(pt_domain *);
    void *(*sym)(pt_domain *, const char *, const char *);
    const pt_fault *(*last_fault)(void);
    void (*clear_fault)(void);
    const char *(*error)(void);
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
    CHECK(other->load(8) == 0 && other->last_fault()->kind == PT_FAULT_NULL_POINTER);
    other->clear_fault();
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
    GET(image_load); GET(options_new); GET(options_deadline); GET(service); GET(open); GET(reset); GET(close); GET(sym);
    GET(last_fault); GET(clear_fault); GET(error);
    pt_options *o = c->options_new();
    CHECK(o && c->options_deadline(o, 0) == 0);
    CHECK(c->service(o, "twice", (void *)service, "i(i)") == 0);
    CHECK(c->service(o, "scale", (void *)scale, "d(d)") == 0);
    CHECK(c->service(o, "note", (void *)note, "v(p)") == 0);
    CHECK(c->service(o, "judge", (void *)judge, "z(z)") == 0);
    pt_image *i = c->image_load(image);
    if (!i) fprintf(stderr, "%s\n", c->error());
    CHECK(i);
    c->domain = c->open(i, o);
    if (!c->domain) fprintf(stderr, "%s\n", c->error());
    CHECK(c->domain);
    c->add = c->sym(c->domain, "add", PT_SIGNATURE(long, (int, int)));
    c->twice_plus = c->sym(c->domain, "twice_plus", PT_SIGNATURE(int, (int)));
    c->load = c->sym(c->domain, "load", PT_SIGNATURE(int, (pt_offset)));
    c->recurse = c->sym(c->domain, "recurse", PT_SIGNATURE(int, (int)));
    /* Only this one has a deadline: a busy machine must not end other calls. */
    CHECK(c->options_deadline(o, 30000) == 0);
    c->hurried = c->open(i, o);
    CHECK(c->hurried);
    c->spin = c->sym(c->hurried, "spin", PT_SIGNATURE(void, (void)));
    CHECK(c->add && c->twice_plus && c->load && c->recurse && c->spin);
}

static void fault(struct copy *c, int kind)
{
    switch (kind) {
    case PT_FAULT_NULL_POINTER: CHECK(c->load(8) == 0); break;
    case PT_FAULT_CONTROL_STACK_OVERFLOW: CHECK(c->recurse(1) == 0); break;
    case PT_FAULT_DEADLINE: c->spin(); break;
    }
    CHECK(c->last_fault() && c->last_fault()->kind == kind);
    c->clear_fault();
    CHECK(c->reset(kind == PT_FAULT_DEADLINE ? c->hurried : c->domain) == 0);
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
    CHECK(a.sym != b.sym);
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
        /* a, b, a, b … seven deep; the innermost poisons b's domain, whose outer calls end when they are back with 0, to
         * which a's add 1. */
        int result = a.twice_plus(100);
        CHECK(result == 1 && !a.last_fault() && b.last_fault()->kind == PT_FAULT_ANOTHER_THREAD);
        a.clear_fault();
        b.clear_fault();
        CHECK(a.reset(a.domain) == 0 && b.reset(b.domain) == 0);
        depth = 5;
        CHECK(a.twice_plus(100) == 0 && a.last_fault()->kind == PT_FAULT_ANOTHER_THREAD);
        depth = 0;
        a.clear_fault();
        CHECK(a.reset(a.domain) == 0 && b.reset(b.domain) == 0);
    }
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, worker, NULL) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    /* Unloading leaves the code where it is, for handlers and function pointers lead there. */
    CHECK(a.close(a.domain) == 0 && dlclose(a.library) == 0 && dlclose(b.library) == 0);
    CHECK(a.add(2, 3) == 0 && b.add(4, 5) == 9);
    fault(&b, PT_FAULT_NULL_POINTER);
    return 0;
}
