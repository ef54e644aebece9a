/* Calls, services, faults and memory from a plain C host. */
#include "check.h"

static int handled;
static char handled_message[128];
static void on_fault(const pt_fault *fault, void *user)
{
    CHECK(fault->kind == PT_FAULT_NULL_POINTER && fault->size >= sizeof *fault);
    snprintf(handled_message, sizeof handled_message, "%s", fault->message);
    ++*(int *)user;
}

static int failing(int x)
{
    if (x == 1) CHECK(pt_service_abort("the host says no") == 0);
    if (x == 2) CHECK(pt_service_exit(42) == 0);
    if (x == 3) CHECK(pt_domain_reset(pt_service_caller()) == PT_E_BUSY);
    return x;
}

int main(int argc, char **argv)
{
    (void)argc;
    const char *reason = NULL;
    CHECK(pt_version() == PT_VERSION);
    CHECK(pt_supported(&reason) == 1 && !strcmp(reason, ""));
    pt_options *options = kit_options();
    CHECK(pt_options_on_fault(options, on_fault, &handled) == 0);
    CHECK(pt_options_user(options, &handled) == 0);
    pt_image *image = pt_image_load(argv[1]);
    CHECK(image);
    pt_domain *domain = pt_domain_new(image, options);
    CHECK(domain && pt_domain_user(domain) == &handled && pt_error_code() == 0);

    /* Calls of every shape. */
    long (*add)(int, int) = PT_SYM(domain, long, add, (int, int));
    CHECK(add && add(2, 3) == 5 && add(-7, 3) == -4 && PT_SYM(domain, long, add, (int, int)) == add);
    double (*half)(double) = PT_SYM(domain, double, half, (double));
    CHECK(half && half(1.25) == 2.5);
    long (*nine)(long, long, long, long, long, long, long, long, long) =
        PT_SYM(domain, long, nine, (long, long, long, long, long, long, long, long, long));
    CHECK(nine && nine(1, 2, 3, 4, 5, 6, 7, 8, 9) == 1 + 8 + 90);
    uint64_t (*wide)(int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t) =
        PT_SYM(domain, uint64_t, wide, (int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t));
    CHECK(wide && wide(-1, 0, 0, 0, 0, 0) == 0xff && wide(0, 0, -1, 0, 0, 0) == 0xffff && wide(0, 0, 0, 0, -1, 0) == 0xffffffff);
    int (*twice_plus)(int) = PT_SYM(domain, int, twice_plus, (int));
    CHECK(twice_plus && twice_plus(20) == 41);
    double (*scaled)(double) = PT_SYM(domain, double, scaled, (double));
    CHECK(scaled && scaled(2) == 6);
    char claimed[16];
    CHECK(pt_domain_signature(domain, "untyped", claimed, sizeof claimed) == PT_E_UNTYPED && strstr(pt_error_message(), "pt_domain_sym"));
    int (*untyped)(int) = PT_SYM(domain, int, untyped, (int));
    CHECK(untyped && untyped(4) == 8);
    pt_offset (*callback)(void) = PT_SYM(domain, pt_offset, callback, (void));
    int (*called_back)(int) = PT_SYM_AT(domain, callback(), int, (int));
    CHECK(called_back && called_back(40) == 42);
    CHECK(!pt_domain_sym_at(domain, callback() + 1, "i(i)") && pt_error_code() == PT_E_MISSING);

    /* Memory. */
    pt_offset (*bss)(void) = PT_SYM(domain, pt_offset, bss, (void));
    pt_offset place = bss();
    char text[16] = "";
    CHECK(place && pt_domain_write(domain, place, "hello", 6) == 0 && pt_domain_read(domain, place, text, 6) == 0 && !strcmp(text, "hello"));
    CHECK(pt_domain_read_string(domain, place, text, sizeof text) == 5);
    CHECK(pt_domain_read_string(domain, place, text, 6) == 5 && pt_domain_read_string(domain, place, text, 5) == PT_E_RANGE);
    void (*tell)(pt_offset) = PT_SYM(domain, void, tell, (pt_offset));
    tell(place);
    CHECK(!pt_fault_last() && !strcmp(told, "hello"));
    CHECK(pt_domain_write(domain, 0x12000, "x", 1) == PT_E_RANGE && pt_domain_read(domain, 0, text, 1) == PT_E_RANGE);
    CHECK(pt_domain_read(domain, 0xffffffff, text, 2) == PT_E_RANGE && pt_heap_alloc(domain, 16) == 0 && pt_error_code() == PT_E_MEMORY);

    /* A fault is 0 and a value; the domain is poisoned until reset. */
    int (*load)(pt_offset) = PT_SYM(domain, int, load, (pt_offset));
    CHECK(load(place) == 0x6c6c6568);
    pt_fault_clear();
    CHECK(load(16) == 0);
    const pt_fault *fault = pt_fault_last();
    CHECK(fault && fault->kind == PT_FAULT_NULL_POINTER && fault->address == 16 && fault->has == 7);
    CHECK(fault->registers[PT_RDI] == 16 && fault->signal == 11 && fault->offset >= 0x12000 && fault == pt_fault_last());
    CHECK(!strcmp(pt_fault_kind_name(fault->kind), "null-pointer") && pt_error_code() == PT_E_FAULT);
    CHECK(!strcmp(pt_error_message(), fault->message) && strstr(pt_fault_report(), "rdi"));
    CHECK(handled == 1 && !strcmp(handled_message, fault->message) && pt_domain_poisoned(domain) == 1);
    CHECK(add(2, 3) == 0 && pt_fault_last()->kind == PT_FAULT_REFUSED && pt_error_code() == PT_E_POISONED);
    CHECK(pt_domain_reset(domain) == 0 && pt_domain_poisoned(domain) == 0);
    pt_fault_clear();
    CHECK(add(2, 3) == 5 && !pt_fault_last() && pt_error_code() == PT_OK && !*pt_error_message());
    CHECK(pt_domain_read_string(domain, place, text, sizeof text) == 0);

    CHECK(pt_options_on_fault(options, NULL, NULL) == 0 && pt_domain_free(domain) == 0);
    CHECK(add(2, 3) == 0 && pt_error_code() == PT_E_CLOSED);
    pt_fault_clear();
    CHECK(pt_options_service(options, "twice", (void *)failing, "i(i)") == 0);
    CHECK(pt_options_name(options, "calculator") == 0 && pt_options_name(options, NULL) == PT_E_ARGUMENT);
    domain = pt_domain_new(image, options);
    CHECK(domain && !strcmp(pt_domain_name(domain), "calculator") && !*pt_domain_name(NULL) && pt_error_code() == PT_E_HANDLE);
    pt_domain *hurried = kit_domain(argv[1], 20000);
    void (*spin)(void) = PT_SYM(hurried, void, spin, (void));
    spin();
    expect(PT_FAULT_DEADLINE);
    CHECK(pt_domain_reset(hurried) == 0);
    twice_plus = PT_SYM(domain, int, twice_plus, (int));
    CHECK(twice_plus(3) == 4 && twice_plus(1) == 0);
    CHECK(pt_fault_last()->kind == PT_FAULT_ABORTED && strstr(pt_error_message(), "the host says no"));
    CHECK(!strcmp(pt_fault_last()->domain, "calculator") && strstr(pt_fault_report(), "in domain calculator"));
    CHECK(pt_domain_reset(domain) == 0 && twice_plus(2) == 0);
    CHECK(pt_fault_last()->kind == PT_FAULT_EXITED && pt_fault_last()->status == 42);
    int (*recurse)(int) = PT_SYM(domain, int, recurse, (int));
    CHECK(pt_domain_reset(domain) == 0 && recurse(1) == 0);
    expect(PT_FAULT_CONTROL_STACK_OVERFLOW);
    CHECK(pt_domain_reset(domain) == 0);
    void (*trap)(void) = PT_SYM(domain, void, trap, (void));
    trap();
    expect(PT_FAULT_TRAP);
    CHECK(pt_domain_free(domain) == 0 && pt_image_free(image) == 0 && pt_options_free(options) == 0);
    return 0;
}
