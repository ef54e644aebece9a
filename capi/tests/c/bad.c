/* Null, stale and invented arguments: errors with a sentence, never a crash. */
#include "check.h"
#include <limits.h>

#define REFUSED(call, code)                                            \
    do {                                                               \
        pt_fault_clear();                                              \
        CHECK((long)(call) == (long)(code));                           \
        CHECK(pt_error_code() == (code) && strlen(pt_error_message()) > 10);   \
    } while (0)
#define NOTHING(call, code)                                            \
    do {                                                               \
        pt_fault_clear();                                              \
        CHECK(!(call));                                                \
        CHECK(pt_error_code() == (code) && strlen(pt_error_message()) > 10);   \
    } while (0)

static void f(void) {}

int main(int argc, char **argv)
{
    (void)argc;
    pt_config config = {0};
    REFUSED(pt_init(&config), PT_E_ARGUMENT);
    config.size = sizeof config + 8;
    struct { pt_config config; uint64_t later; } large = {config, 1};
    REFUSED(pt_init(&large.config), PT_E_ARGUMENT);
    large.later = 0;
    large.config.tick_us = 2000;
    CHECK(pt_init(&large.config) == 0);
    config.size = offsetof(pt_config, signal);
    config.tick_us = 2000;
    CHECK(pt_init(&config) == 0);
    config.tick_us = 3000;
    REFUSED(pt_init(&config), PT_E_CONFIGURED);
    config.size = sizeof config;
    config.signal = 9;
    REFUSED(pt_init(&config), PT_E_ARGUMENT);
    config.signal = 0;
    config.flags = 1 << 30;
    REFUSED(pt_init(&config), PT_E_ARGUMENT);

    NOTHING(pt_image_load(NULL), PT_E_ARGUMENT);
    NOTHING(pt_image_load("/nowhere/at/all.px"), PT_E_FILE);
    NOTHING(pt_image_load("/dev/zero"), PT_E_FILE);
    CHECK(strstr(pt_error_message(), "/dev/zero: it is a device"));
    NOTHING(pt_image_load_limited(argv[1], 10), PT_E_FILE);
    CHECK(strstr(pt_error_message(), "at most 10 are read"));
    NOTHING(pt_image_load_limited(NULL, 10), PT_E_ARGUMENT);
    NOTHING(pt_image_from_memory(NULL, 10), PT_E_ARGUMENT);
    NOTHING(pt_image_from_memory("xyz", 0), PT_E_IMAGE);
    NOTHING(pt_image_from_memory("\177ELF", 4), PT_E_IMAGE);
    NOTHING(pt_image_from_memory("x", SIZE_MAX), PT_E_ARGUMENT);
    REFUSED(pt_image_free(NULL), PT_E_HANDLE);
    /* A chain of calls without checks ends with the first error. */
    CHECK(!PT_SYM(pt_domain_new(pt_image_load("/nowhere.px"), NULL), long, add, (int, int)) && pt_error_code() == PT_E_HANDLE);
    CHECK(!strncmp(pt_error_message(), "the pt_domain is NULL; the error before: ", 41) && strstr(pt_error_message(), "/nowhere.px"));
    CHECK(!strstr(pt_error_message(), "the pt_image"));

    /* A verifier's refusal says where. */
    FILE *file = fopen(argv[1], "rb");
    char *bytes = malloc(1 << 20);
    size_t len = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    for (size_t i = 0; i + 4 < len; i++)
        if (!memcmp(bytes + i, "\x65\x67\x8b\x07", 4)) {
            memcpy(bytes + i, "\x0f\x05\x90\x90", 4);
            break;
        }
    NOTHING(pt_image_from_memory(bytes, len), PT_E_REFUSED);
    CHECK(strstr(pt_error_message(), "0x12"));
    free(bytes);

    pt_image *image = pt_image_load_limited(argv[1], 16 << 20);
    CHECK(image);
    uint32_t instructions = 7, depth = 7;
    REFUSED(pt_image_bounded(NULL, 1, 1, NULL, NULL), PT_E_HANDLE);
    REFUSED(pt_image_bounded(image, UINT32_MAX, UINT32_MAX, &instructions, &depth), PT_E_REFUSED);
    CHECK(strstr(pt_error_message(), "bounded-") && instructions == 7 && depth == 7);
    NOTHING(pt_domain_new(image, NULL), PT_E_UNRESOLVED);
    CHECK(strstr(pt_error_message(), "twice"));
    NOTHING(pt_domain_new(image, (pt_options *)image), PT_E_HANDLE);
    NOTHING(pt_domain_new((pt_image *)argv, NULL), PT_E_HANDLE);
    pt_options *options = kit_options();
    REFUSED(pt_options_service(NULL, "f", (void *)f, "v()"), PT_E_HANDLE);
    REFUSED(pt_options_service(options, NULL, (void *)f, "v()"), PT_E_ARGUMENT);
    REFUSED(pt_options_service(options, "f", NULL, "v()"), PT_E_ARGUMENT);
    REFUSED(pt_options_service(options, "f", (void *)f, NULL), PT_E_ARGUMENT);
    REFUSED(pt_options_service(options, "f", (void *)f, "void f(void)"), PT_E_ARGUMENT);
    REFUSED(pt_options_service(options, "f", (void *)f, "v(iiiiiii)"), PT_E_ARGUMENT);
    REFUSED(pt_options_service(options, "\xff\xfe", (void *)f, "v()"), PT_E_ARGUMENT);
    REFUSED(pt_options_placement(options, 17), PT_E_ARGUMENT);
    REFUSED(pt_options_threads(options, 0), PT_E_ARGUMENT);
    REFUSED(pt_options_own_threads(NULL, 1), PT_E_HANDLE);
    REFUSED(pt_options_sandbox_threads(NULL, 1), PT_E_HANDLE);
    CHECK(pt_options_sandbox_threads(options, 1) == 0 && pt_options_sandbox_threads(options, 0) == 0);
    CHECK(pt_options_own_threads(options, 1) == 0 && pt_options_own_threads(options, 0) == 0);
    CHECK(pt_options_heap(options, UINT64_MAX) == 0);
    NOTHING(pt_domain_new(image, options), PT_E_LIMIT);
    CHECK(pt_options_heap(options, 0) == 0 && pt_options_deadline(options, UINT64_MAX) == 0);
    CHECK(pt_options_service(options, "twice", (void *)twice, "l(l)") == 0);
    NOTHING(pt_domain_new(image, options), PT_E_SIGNATURE);
    CHECK(pt_options_service(options, "twice", (void *)twice, "i(i)") == 0);
    pt_domain *domain = pt_domain_new(image, options);
    CHECK(domain);

    NOTHING(pt_domain_sym(domain, NULL, "v()"), PT_E_ARGUMENT);
    NOTHING(PT_SYM(domain, long, ad, (int, int)), PT_E_MISSING);
    CHECK(strstr(pt_error_message(), "did you mean `add`"));
    NOTHING(pt_domain_sym(domain, "add", "l(i)"), PT_E_SIGNATURE);
    NOTHING(pt_domain_sym(domain, "add", "("), PT_E_ARGUMENT);
    NOTHING(pt_domain_sym(domain, "add", "l(iiiiiiiiiiiiiiiii)"), PT_E_ARGUMENT);
    NOTHING(pt_domain_sym_at(domain, 0, "v()"), PT_E_MISSING);
    NOTHING(pt_domain_sym_at(domain, 0xffffffff, "v()"), PT_E_MISSING);
    NOTHING(pt_domain_sym_at(domain, 0x11000, "v()"), PT_E_MISSING);

    char text[8];
    pt_offset (*bss)(void) = PT_SYM(domain, pt_offset, bss, (void));
    REFUSED(pt_domain_read(domain, bss(), NULL, 8), PT_E_ARGUMENT);
    REFUSED(pt_domain_read(domain, bss(), text, SIZE_MAX), PT_E_ARGUMENT);
    CHECK(pt_domain_read(domain, bss(), NULL, 0) == 0 && pt_domain_write(domain, bss(), NULL, 0) == 0);
    REFUSED(pt_domain_write(domain, bss(), NULL, 8), PT_E_ARGUMENT);
    REFUSED(pt_domain_read_string(domain, bss(), NULL, 8), PT_E_ARGUMENT);
    REFUSED(pt_domain_read_string(domain, bss(), text, 0), PT_E_ARGUMENT);
    REFUSED(pt_domain_read_string(domain, 0xffffffff, text, 8), PT_E_RANGE);
    NOTHING(pt_heap_alloc(domain, SIZE_MAX), PT_E_MEMORY);

    NOTHING(pt_service_caller(), PT_E_OUTSIDE);
    REFUSED(pt_service_exit(1), PT_E_OUTSIDE);
    REFUSED(pt_service_abort("no"), PT_E_OUTSIDE);
    REFUSED(pt_service_abort(NULL), PT_E_ARGUMENT);
    CHECK(pt_handle_signal(11, NULL, NULL) == 0);
    CHECK(!strcmp(pt_fault_kind_name(INT_MIN), "unknown") && !strcmp(pt_fault_kind_name(0), "none"));
    pt_fault_clear();
    CHECK(!pt_fault_last() && !*pt_fault_report());

    REFUSED(pt_domain_free(NULL), PT_E_HANDLE);
    REFUSED(pt_domain_free((pt_domain *)image), PT_E_HANDLE);
    CHECK(pt_domain_free(domain) == 0);
    REFUSED(pt_domain_free(domain), PT_E_HANDLE);
    REFUSED(pt_domain_reset(domain), PT_E_HANDLE);
    REFUSED(pt_domain_interrupt(domain), PT_E_HANDLE);
    REFUSED(pt_domain_poisoned(domain), PT_E_HANDLE);
    REFUSED(pt_domain_read(domain, 0x10000, text, 1), PT_E_HANDLE);
    NOTHING(PT_SYM(domain, long, add, (int, int)), PT_E_HANDLE);
    NOTHING(pt_domain_user(domain), PT_E_HANDLE);
    CHECK(pt_options_free(options) == 0 && pt_image_free(image) == 0);
    REFUSED(pt_options_free(options), PT_E_HANDLE);
    REFUSED(pt_image_free(image), PT_E_HANDLE);
    return 0;
}
