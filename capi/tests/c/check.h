/* The C tests' one macro, and what most of them begin with. */
#ifndef CHECK_H
#define CHECK_H
#include <postern.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                       \
    do {                                                                                                       \
        if (!(condition)) {                                                                                    \
            fprintf(stderr, "%s:%d: %s\nerror: %d %s\nfault: %s", __FILE__, __LINE__, #condition,              \
                    pt_error_code(), pt_error_message(), pt_fault_report());                                           \
            exit(1);                                                                                           \
        }                                                                                                      \
    } while (0)

/* The services that kit.px imports. */
static int twice(int x) { return 2 * x; }
static double scale(double x) { return x * 1.5; }
static char told[64];
static int judgements[2];
static _Bool judge(_Bool x) { return judgements[x]++ >= 0 && !x; }
static void note(pt_offset text) { pt_domain_read_string(pt_service_caller(), text, told, sizeof told); }

__attribute__((unused)) static pt_options *kit_options(void)
{
    pt_options *options = pt_options_new();
    CHECK(options);
    CHECK(pt_options_service(options, "twice", (void *)twice, "i(i)") == 0);
    CHECK(pt_options_service(options, "scale", (void *)scale, "d(d)") == 0);
    CHECK(pt_options_service(options, "note", (void *)note, "v(p)") == 0);
    CHECK(pt_options_service(options, "judge", (void *)judge, "z(z)") == 0);
    /* Only domains that are to meet their deadline have one: a busy machine must not end other
     * calls. */
    CHECK(pt_options_deadline(options, 0) == 0);
    return options;
}

__attribute__((unused)) static pt_domain *kit_domain(const char *path, uint64_t deadline)
{
    pt_options *options = kit_options();
    CHECK(pt_options_deadline(options, deadline) == 0);
    pt_image *image = pt_image_load(path);
    CHECK(image);
    pt_domain *domain = pt_domain_new(image, options);
    CHECK(domain);
    CHECK(pt_image_free(image) == 0 && pt_options_free(options) == 0);
    return domain;
}

/* Checks that the last call ended in a fault of this kind and forgets it. */
__attribute__((unused)) static void expect(int kind)
{
    const pt_fault *fault = pt_fault_last();
    if (!fault || fault->kind != kind) {
        fprintf(stderr, "expected %s, got %s: %s\n", pt_fault_kind_name(kind),
                fault ? pt_fault_kind_name(fault->kind) : "none", fault ? fault->message : "");
        abort();
    }
    pt_fault_clear();
}
#endif
