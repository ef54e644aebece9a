/* Namespaces: functions that are compiled, called, replaced and deleted while the host runs. */
#include "check.h"
#include <string.h>

static uint64_t count(pt_namespace *space, int what)
{
    uint64_t value = 99;
    CHECK(pt_namespace_count(space, what, &value) == 0);
    return value;
}

int main(void)
{
    pt_options *o = pt_options_new();
    CHECK(o && pt_options_service(o, "twice", (void *)twice, "i(i)") == 0 && pt_options_deadline(o, 100000) == 0);
    CHECK(!pt_namespace_new(NULL, o, 9, PT_USE_VECTORS) && pt_error_code() == PT_E_ARGUMENT);
    pt_namespace *space = pt_namespace_new(NULL, o, PT_RECOVER_CONTINUE, PT_USE_VECTORS);
    CHECK(space && pt_namespace_domain(space));

    /* By name at creation, by pointer and id from here. */
    CHECK(pt_namespace_create(space, "a.ec",
        "int twice(int); int total; int add(int a, int b) { total += a; return a + twice(b); }") == 0);
    CHECK(pt_namespace_create(space, "b.ec", "int add(int, int); int sum(int n) { return add(n, n) + 1; }") == 0);
    int (*sum)(int) = PT_NAMESPACE_SYM(space, int, sum, (int));
    CHECK(sum && sum(5) == 16);
    CHECK(PT_NAMESPACE_SYM(space, int, sum, (int)) == sum);
    uint64_t id = pt_namespace_lookup(space, "add"), arguments[2] = {3, 4}, result = 0;
    CHECK(id && pt_namespace_call(space, id, arguments, 2, &result) == 0 && result == 11);
    CHECK(pt_namespace_call(space, id, arguments, 1, &result) == PT_E_ARGUMENT);
    uint32_t total = pt_namespace_variable(space, "total");
    int value = 0;
    CHECK(total && pt_domain_read(pt_namespace_domain(space), total, &value, sizeof value) == 0 && value == 8);

    /* Errors say what is wrong, and change nothing. */
    CHECK(pt_namespace_create(space, "c.ec", "int f(void) { return x; }") == PT_E_SOURCE);
    CHECK(strstr(pt_error_message(), "1:22"));
    pt_source_error wrong = {.size = sizeof wrong};
    CHECK(pt_error_source(0, &wrong) == 1 && wrong.line == 1 && wrong.column == 22 && wrong.length == 1);
    CHECK(*wrong.kind && !*wrong.file && strstr(wrong.message, "x") && !strcmp(wrong.text, "int f(void) { return x; }"));
    CHECK(pt_error_source(1, &wrong) == 0 && pt_error_source(0, NULL) == 0 && pt_error_code() == PT_E_SOURCE);
    struct { size_t size; uint32_t line; char rest[60]; } old = {.size = 12, .rest = "as it was"};
    CHECK(pt_error_source(0, (pt_source_error *)&old) == 1 && old.line == 1 && !strcmp(old.rest, "as it was"));
    CHECK(pt_namespace_create(space, "c.ec", "int f(void) { return x; }\nint g(void) {\n\treturn y; }") == PT_E_SOURCE);
    CHECK(pt_error_source(1, &wrong) == 1 && wrong.line == 3 && wrong.column == 9);
    CHECK(pt_namespace_create(space, "c.ec", "int g(int); int f(void) { return g(1); }") == PT_E_UNRESOLVED);
    CHECK(pt_namespace_create(space, "c.ec", "int add(int a) { return a; }") == PT_E_SIGNATURE);
    CHECK(pt_namespace_create_object(space, "c.o", "ELF", 3) == PT_E_IMAGE);
    CHECK(pt_namespace_variable(space, "nothing") == 0 && pt_error_code() == PT_E_MISSING);
    CHECK(pt_namespace_lookup(space, "nothing") == 0 && !PT_NAMESPACE_SYM(space, int, nothing, (int)));

    /* A source becomes an image without a namespace, or only its errors. */
    const char *square = "int twice(int); int square(int x) { return x * twice(x); }";
    int64_t length = pt_ecode_image("square.ec", square, NULL, 0);
    unsigned char few[8] = "as is", *bytes = malloc((size_t)length);
    CHECK(length > 64 && pt_ecode_image("square.ec", square, few, sizeof few) == length && !strcmp((char *)few, "as is"));
    CHECK(bytes && pt_ecode_image("square.ec", square, bytes, (size_t)length) == length);
    pt_image *image = pt_image_from_memory(bytes, (size_t)length);
    pt_domain *compiled = pt_domain_new(image, o);
    int (*squared)(int) = PT_SYM(compiled, int, square, (int));
    CHECK(squared && squared(7) == 98 && pt_domain_free(compiled) == 0 && pt_image_free(image) == 0);
    free(bytes);
    CHECK(pt_ecode_image("c.ec", "int f(void) { return x; }", NULL, 0) == PT_E_SOURCE);
    CHECK(pt_error_source(0, &wrong) == 1 && wrong.line == 1 && wrong.column == 22);
    CHECK(pt_ecode_image("c.ec", "extern int x; int f(void) { return x; }", NULL, 0) == PT_E_UNRESOLVED);
    CHECK(pt_ecode_image("c.ec", NULL, NULL, 0) == PT_E_ARGUMENT && pt_ecode_image("c.ec", square, NULL, 1 << 20) == PT_E_ARGUMENT);

    /* How much there is for functions. */
    pt_options *small = pt_options_new();
    CHECK(small && pt_options_capacity(small, 1, 4096, 0, 4096) == 0);
    pt_namespace *tight = pt_namespace_new(NULL, small, PT_RECOVER_DEFAULT, PT_USE_GENERAL);
    CHECK(tight && pt_namespace_create(tight, "a.ec", "int few[8]; int f(void) { return few[0]; }") == 0);
    CHECK(pt_namespace_create(tight, "b.ec", "int many[2048]; int g(void) { return many[0]; }") == PT_E_LIMIT);
    CHECK(pt_options_capacity(small, 0, UINT64_MAX, 0, 0) == 0 && !pt_namespace_new(NULL, small, PT_RECOVER_DEFAULT, PT_USE_GENERAL));
    CHECK(pt_error_code() == PT_E_LIMIT && pt_namespace_free(tight) == 0 && pt_options_free(small) == 0);

    /* Whoever has the pointer follows. */
    CHECK(pt_namespace_create(space, "a.ec", "int add(int a, int b) { return a - b; }") == 0);
    CHECK(sum(5) == 1);
    CHECK(pt_namespace_create(space, "d.ec", "int other(int a, int b) { return a * b; }") == 0);
    CHECK(pt_namespace_link(space, "add", "other") == 0 && sum(5) == 26);
    CHECK(pt_namespace_link(space, "add", "nothing") == PT_E_UNRESOLVED);
    CHECK(pt_namespace_collect(space) == 0);
    CHECK(count(space, PT_NAMESPACE_UNITS) == 2 && count(space, PT_NAMESPACE_NAMES) == 3);

    /* A quantum and a recovery for one function. */
    CHECK(pt_namespace_create(space, "e.ec",
        "int state; int spin(int n) { while (n) state++; return state; } int crash(int at) { state = 1; return *(int *)(long)at; }") == 0);
    uint64_t spin = pt_namespace_lookup(space, "spin"), crash = pt_namespace_lookup(space, "crash");
    CHECK(pt_namespace_quantum(space, spin, 5000) == 0);
    uint64_t one = 1, zero = 0;
    CHECK(pt_namespace_call(space, spin, &one, 1, &result) == PT_E_FAULT && pt_fault_last()->kind == PT_FAULT_DEADLINE);
    CHECK(pt_namespace_call(space, crash, &zero, 1, &result) == PT_E_FAULT);
    CHECK(strstr(pt_fault_last()->place, "crash at e.ec:1"));
    CHECK(pt_namespace_call(space, spin, &zero, 1, &result) == 0 && result == 1);
    CHECK(pt_namespace_recovery(space, crash, PT_RECOVER_RESTART) == 0);
    CHECK(pt_namespace_call(space, crash, &zero, 1, &result) == PT_E_FAULT);
    CHECK(pt_namespace_call(space, spin, &zero, 1, &result) == 0 && result == 0);
    CHECK(pt_namespace_recovery(space, crash, PT_RECOVER_TERMINATE) == 0);
    CHECK(pt_namespace_call(space, crash, &zero, 1, &result) == PT_E_FAULT);
    CHECK(pt_namespace_call(space, spin, &zero, 1, &result) == PT_E_POISONED);
    CHECK(pt_domain_reset(pt_namespace_domain(space)) == 0 && sum(5) == 26);

    /* Deleted: a fault with its name; the same id once it is there again. */
    CHECK(pt_namespace_delete(space, "sum") == 0 && pt_namespace_delete(space, "sum") == PT_E_MISSING);
    pt_fault_clear();
    CHECK(sum(5) == 0 && pt_fault_last()->kind == PT_FAULT_DELETED);
    CHECK(pt_namespace_create(space, "f.ec", "int sum(int n) { return n; }") == 0 && sum(5) == 5);

    CHECK(pt_namespace_free(space) == 0 && pt_namespace_free(space) == PT_E_HANDLE);
    CHECK(sum(5) == 0);
    CHECK(pt_options_free(o) == 0);
    return 0;
}
