/* Extensions inside a process: an image is loaded from the archive, its functions are called like any others, and what it does wrong
 * ends its own call and nothing else. */
#include <exos/extension.h>
#include <stdio.h>

static int failed;

static void show(const char *what, int expected)
{
    const pt_fault *fault = pt_fault_last();
    int kind = fault ? fault->kind : 0;
    printf("%-28s %s%s%s\n", what, fault ? fault->message : "returned", kind == expected ? "" : "   NOT ", kind == expected ? "" : pt_fault_kind_name(expected));
    failed += kind != expected;
    pt_fault_clear();
}

static void is(const char *what, long found, long expected)
{
    printf("%-28s %ld%s\n", what, found, found == expected ? "" : "   WRONG");
    failed += found != expected;
}

static long host_add(long a, long b) { return a + b; }

int main(void)
{
    pt_image *image = pt_image_load("guest.px");
    if (!image) return printf("guest.px: %s\n", pt_error_message()), 1;
    is("without its services", pt_domain_new(image, NULL) != NULL, 0);
    printf("  %s\n", pt_error_message());
    pt_options *options = pt_options_new();
    pt_options_service(options, "host_add", (void *)host_add, "l(ll)");
    pt_options_deadline(options, 50000);
    pt_options_peer_open(options, "other");
    pt_domain *first = pt_domain_new(image, options), *second = pt_domain_new(image, options);
    if (!first || !second) return printf("no domain: %s\n", pt_error_message()), 1;
    is("a peer", pt_domain_bind_peer(second, "other", first, "next", 0, 0), PT_E_SIGNATURE);
    is("a peer", pt_domain_bind_peer(second, "other", first, "add_one", 0, 0), PT_E_MISSING);

    is("add(2, 3)", PT_SYM(first, int, "i(ii)", add, (int, int))(2, 3), 5);
    is("half(5) * 2", 2 * PT_SYM(first, double, "d(d)", half, (double))(5), 5);
    is("ask(20, 1)", PT_SYM(first, long, "l(ll)", ask, (long, long))(20, 1), 42);
    int (*next)(void) = PT_SYM(first, int, "i()", next, (void));
    int (*others)(void) = PT_SYM(second, int, "i()", next, (void));
    is("next()", next(), 1);
    is("next()", next(), 2);
    is("the other domain's next()", others(), 1);
    show("nothing went wrong", PT_FAULT_NONE);

    int (*read_at)(unsigned) = PT_SYM(first, int, "i(I)", read_at, (unsigned));
    read_at(0x100);
    show("read at 0x100", PT_FAULT_NULL_POINTER);
    next();
    show("a call after a fault", PT_FAULT_REFUSED);
    is("the other domain goes on", others(), 2);
    is("reset", pt_domain_reset(first), 0);
    is("next() after a reset", next(), 1);
    read_at(0xf0000000u);
    show("read at 0xf0000000", PT_FAULT_READ);
    pt_domain_reset(first);
    PT_SYM(first, void, "v(Ii)", write_at, (unsigned, int))(0xf0000000u, 1);
    show("write at 0xf0000000", PT_FAULT_WRITE);
    pt_domain_reset(first);
    PT_SYM(first, void, "v()", write_constant, (void))();
    show("write a constant", PT_FAULT_READ_ONLY);
    pt_domain_reset(first);
    PT_SYM(first, void, "v(Ii)", write_at, (unsigned, int))(0x13000, 1);
    show("write its text", PT_FAULT_READ_ONLY);
    pt_domain_reset(first);
    PT_SYM(first, int, "i(ii)", divide, (int, int))(1, 0);
    show("divide by zero", PT_FAULT_ARITHMETIC);
    pt_domain_reset(first);
    PT_SYM(first, int, "i(I)", jump, (unsigned))(0x20);
    show("jump to 0x20", PT_FAULT_BAD_JUMP);
    pt_domain_reset(first);
    PT_SYM(first, void, "v()", trap, (void))();
    show("trap", PT_FAULT_TRAP);
    pt_domain_reset(first);
    PT_SYM(first, void, "v()", spin, (void))();
    show("a loop without end", PT_FAULT_DEADLINE);
    pt_domain_reset(first);
    PT_SYM(first, long, "l()", spin_in_service, (void))();
    show("services without end", PT_FAULT_DEADLINE);
    pt_domain_reset(first);
    PT_SYM(first, int, "i(i)", big, (int))(1);
    show("a frame of 1 MiB", PT_FAULT_DATA_STACK_OVERFLOW);
    pt_domain_reset(first);
    PT_SYM(first, int, "i(i)", recurse, (int))(1);
    show("recursion without end", PT_FAULT_DATA_STACK_OVERFLOW);
    is("the other domain goes on", others(), 3);
    pt_domain_free(first);
    next();
    show("a call of a closed domain", PT_FAULT_REFUSED);
    printf(failed ? "extension: %d WRONG\n" : "extension: all as it should be\n", failed);
    return failed != 0;
}
