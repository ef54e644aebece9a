/* Extensions that do everything wrong: each call ends with the fault that it is, and the process and its other domains go on. */
#include <exos/extension.h>
#include <stdio.h>

static int failed;
static pt_domain *domain, *beside;

static void is(const char *what, long found, long expected)
{
    if (found != expected) {
        printf("%s: %ld, not %ld\n", what, found, expected);
        failed = 1;
    }
}

/* How the last call ended; the domain begins anew, and the other one is as it was. */
static void ended(const char *what, int expected)
{
    static int others;
    const pt_fault *fault = pt_fault_last();
    int kind = fault ? fault->kind : PT_FAULT_NONE;
    if (kind != expected) {
        printf("%s: %s (%s), not %s\n", what, pt_fault_kind_name(kind), fault ? fault->message : "", pt_fault_kind_name(expected));
        failed = 1;
    }
    pt_fault_clear();
    if (expected != PT_FAULT_NONE && expected != PT_FAULT_EXITED) {
        is(what, pt_domain_poisoned(domain), 1);
        PT_SYM(domain, int, "i()", next, (void))();
        is("a call after a fault", pt_fault_last() ? pt_fault_last()->kind : 0, PT_FAULT_REFUSED);
        is(what, pt_domain_reset(domain), 0);
    }
    pt_fault_clear();
    is("the other domain", PT_SYM(beside, int, "i()", next, (void))(), ++others);
    is("the other domain", pt_fault_last() != NULL, 0);
}

static int deepest;
static pt_domain *freed;

static long host_add(long a, long b)
{
    if (a == 1000) {
        /* A service calls the domain that called it, which nobody can reset meanwhile. */
        int inner = PT_SYM(domain, int, "i(ii)", add, (int, int))(1, 2);
        is("a nested call", inner, 3);
        is("a reset inside", pt_domain_reset(domain), PT_E_BUSY);
    }
    if (a == 2000)
        pt_service_abort("the host does not like it");
    if (a == 3000)
        pt_service_exit(7);
    if (a == 4000 && ++deepest < 200)
        return PT_SYM(domain, long, "l(ll)", ask, (long, long))(a, b);
    if (a == 5000 && freed) {
        pt_domain_free(freed);
        freed = NULL;
    }
    return a + b;
}

static void access_wrong(void)
{
    int (*read_at)(unsigned) = PT_SYM(domain, int, "i(I)", read_at, (unsigned));
    void (*write_at)(unsigned, int) = PT_SYM(domain, void, "v(Ii)", write_at, (unsigned, int));
    unsigned text = PT_SYM(domain, unsigned, "I()", where_text_is, (void))();
    unsigned data = PT_SYM(domain, unsigned, "I()", where_data_is, (void))();
    read_at(0x100);
    ended("a read at 0x100", PT_FAULT_NULL_POINTER);
    write_at(0xfffffffc, 1);
    ended("a write at the end", PT_FAULT_WRITE);
    read_at(0xf0000000);
    ended("a read where nothing is", PT_FAULT_READ);
    write_at(0xf0000000, 1);
    ended("a write where nothing is", PT_FAULT_WRITE);
    write_at(text, 1);
    ended("a write to text", PT_FAULT_READ_ONLY);
    write_at(0x10000, 1);
    ended("a write to the info page", PT_FAULT_READ_ONLY);
    PT_SYM(domain, void, "v()", write_constant, (void))();
    ended("a write to a constant", PT_FAULT_READ_ONLY);
    write_at(data, 41);
    is("a write to data", PT_SYM(domain, int, "i()", next, (void))(), 42);
    is("the host's write", pt_domain_write(domain, data, &(int){6}, 4), 0);
    is("the host's write", PT_SYM(domain, int, "i()", next, (void))(), 7);
    is("the host's write to text", pt_domain_write(domain, text, &(int){6}, 4), PT_E_RANGE);
    is("the host's read", pt_domain_read(domain, 0xf0000000, &(int){6}, 4), PT_E_RANGE);
    is("reset", pt_domain_reset(domain), 0);
    is("data after a reset", PT_SYM(domain, int, "i()", next, (void))(), 1);
}

/* Pages come when they are touched, as many as the domain may have, and are zero again after a reset. */
static void heap(void)
{
    int (*read_at)(unsigned) = PT_SYM(domain, int, "i(I)", read_at, (unsigned));
    void (*write_at)(unsigned, int) = PT_SYM(domain, void, "v(Ii)", write_at, (unsigned, int));
    unsigned start = read_at(0x10010), end = read_at(0x10014);
    is("the heap", end - start, 65536);
    for (unsigned at = start; at < end; at += 4096)
        write_at(at, at);
    is("the heap's first page", read_at(start), start);
    is("the host's look", pt_domain_read(domain, end - 4096, &(unsigned){0}, 4), 0);
    is("reset", pt_domain_reset(domain), 0);
    is("the heap after a reset", read_at(end - 4096), 0);
    unsigned copied = 1;
    is("the host's look", pt_domain_read(domain, start, &copied, 4), 0);
    is("a page that nobody touched", copied, 0);
    write_at(end, 1);
    ended("a write behind the heap", PT_FAULT_HEAP_LIMIT);
}

static void control_wrong(void)
{
    int (*jump)(unsigned) = PT_SYM(domain, int, "i(I)", jump, (unsigned));
    unsigned text = PT_SYM(domain, unsigned, "I()", where_text_is, (void))();
    unsigned data = PT_SYM(domain, unsigned, "I()", where_data_is, (void))();
    PT_SYM(domain, int, "i(ii)", divide, (int, int))(1, 0);
    ended("a division by zero", PT_FAULT_ARITHMETIC);
    jump(0x20);
    ended("a jump to 0x20", PT_FAULT_BAD_JUMP);
    jump(text + 1);
    ended("a jump into an instruction", PT_FAULT_BAD_JUMP);
    jump(0x11000 + 32 * 20);
    ended("a jump to a slot that there is not", PT_FAULT_BAD_JUMP);
    /* What stands before a function, forged in data. */
    const unsigned char pad[8] = {0x0f, 0x1f, 0x84, 0x20};
    is("a forged pad", pt_domain_write(domain, data & ~7u, pad, 8), 0);
    jump(data & ~7u);
    ended("a jump to data", PT_FAULT_EXECUTE);
    PT_SYM(domain, void, "v()", trap, (void))();
    ended("a trap", PT_FAULT_TRAP);
    PT_SYM(domain, int, "i(i)", spin, (int))(1);
    ended("a loop without end", PT_FAULT_DEADLINE);
    PT_SYM(domain, long, "l()", spin_in_service, (void))();
    ended("services without end", PT_FAULT_DEADLINE);
    PT_SYM(domain, int, "i(i)", big, (int))(1);
    ended("a frame that is too large", PT_FAULT_DATA_STACK_OVERFLOW);
    PT_SYM(domain, int, "i(i)", recurse, (int))(1);
    ended("recursion on the data stack", PT_FAULT_DATA_STACK_OVERFLOW);
    PT_SYM(domain, int, "i(i)", deep, (int))(1);
    ended("recursion without end", PT_FAULT_CONTROL_STACK_OVERFLOW);
}

static void services(void)
{
    long (*ask)(long, long) = PT_SYM(domain, long, "l(ll)", ask, (long, long));
    is("a service", ask(20, 1), 42);
    is("a nested call", ask(1000, 1), 2002);
    ended("a nested call", PT_FAULT_NONE);
    ask(2000, 1);
    ended("a service that gives up", PT_FAULT_ABORTED);
    ask(3000, 1);
    is("the status", pt_fault_last() ? pt_fault_last()->status : 0, 7);
    ended("a service that exits", PT_FAULT_EXITED);
    ask(4000, 1);
    is("nested without end", deepest >= 60 && deepest < 100, 1);
    pt_fault_clear();
    pt_domain_reset(domain);
}

/* A domain whose import is the other's function. */
static void peers(pt_image *image, pt_options *options)
{
    /* What a peer takes counts for its caller, too, which ends when the peer has. */
    pt_options_deadline(options, 1000000);
    pt_options_peer(options, "other", beside, "add_one", 0, 0);
    pt_domain *caller = pt_domain_new(image, options);
    int (*call)(int) = PT_SYM(caller, int, "i(i)", call_other, (int));
    is("a peer", call(5), 6);
    is("its type", pt_domain_bind_peer(caller, "other", domain, "half", 0, 0), PT_E_SIGNATURE);
    is("its name", pt_domain_bind_peer(caller, "other", domain, "nobody", 0, 0), PT_E_MISSING);
    is("binding", pt_domain_bind_peer(caller, "other", domain, "deep", 0, 0), 0);
    is("a peer that faults", call(5), 1000);
    is("a peer that is poisoned", call(5), 2000);
    pt_domain_reset(domain);
    is("binding", pt_domain_bind_peer(caller, "other", domain, "spin", 20000, 0), 0);
    is("a peer that takes too long", call(5), 8000);
    pt_domain_reset(domain);
    is("binding", pt_domain_bind_peer(caller, "other", domain, "add_one", 0, 0), 0);
    is("a peer again", call(5), 6);
    is("the caller", pt_domain_poisoned(caller), 0);
    pt_domain_free(caller);
    call(5);
    is("a closed domain", pt_fault_last() ? pt_fault_last()->kind : 0, PT_FAULT_REFUSED);
    pt_fault_clear();
}

/* A service frees the domain that called it: that call ends as it would have, others are refused. */
static void freed_inside(pt_image *image, pt_options *options)
{
    freed = pt_domain_new(image, options);
    long (*ask)(long, long) = PT_SYM(freed, long, "l(ll)", ask, (long, long));
    is("freed by its service", ask(5000, 1), 10002);
    is("freed by its service", freed != NULL, 0);
    is("a call of it", ask(1, 1), 0);
    is("a call of it", pt_fault_last() ? pt_fault_last()->kind : 0, PT_FAULT_REFUSED);
    pt_fault_clear();
}

/* Images with a bit that is another one: none is more than refused. */
static void bits(void)
{
    static unsigned char bytes[1 << 20];
    FILE *file = fopen("wrong.px", "rb");
    size_t length = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file)
        fclose(file);
    is("the image's file", length > 1000 && length < sizeof bytes, 1);
    for (size_t at = 0; at < 64 && length; at++) {
        size_t place = at < 32 ? at * 7 : at * (length / 64);
        bytes[place] ^= 1 << at % 8;
        pt_image *image = pt_image_from_memory(bytes, length);
        is("an error", image == NULL ? pt_error_code() < 0 : 1, 1);
        pt_image_free(image);
        bytes[place] ^= 1 << at % 8;
    }
    /* What stands at the end is for debuggers only. */
    for (size_t at = 0; at < length; at += length / 16 + 1) {
        pt_image *image = pt_image_from_memory(bytes, at);
        is("a file that ends early", image != NULL && at < length / 16, 0);
        pt_image_free(image);
    }
}

/* Domains come and go, and what they had comes back. */
static void many(pt_image *image, pt_options *options)
{
    for (int round = 0; round < 40; round++) {
        pt_domain *one = pt_domain_new(image, options);
        if (!one) {
            printf("round %d: %s\n", round, pt_error_message());
            failed = 1;
            return;
        }
        is("a domain of many", PT_SYM(one, int, "i()", next, (void))(), 1);
        pt_domain_free(one);
    }
}

static void images(void)
{
    static const char nothing[64] = "\177ELF";
    is("an image of nothing", pt_image_from_memory(nothing, sizeof nothing) != NULL, 0);
    is("its error", pt_error_code(), PT_E_IMAGE);
    is("a file that is not there", pt_image_load("nobody.px") != NULL, 0);
    is("its error", pt_error_code(), PT_E_FILE);
}

int main(void)
{
    pt_image *image = pt_image_load("wrong.px");
    if (!image) {
        printf("wrong.px: %s\n", pt_error_message());
        return 1;
    }
    pt_options *options = pt_options_new();
    is("without a service", pt_domain_new(image, NULL) != NULL, 0);
    is("its error", pt_error_code(), PT_E_UNRESOLVED);
    is("granting", pt_options_service(options, "host_add", (void *)host_add, "l(dd)"), 0);
    pt_options_peer_open(options, "other");
    is("a service of another type", pt_domain_new(image, options) != NULL, 0);
    is("its error", pt_error_code(), PT_E_SIGNATURE);
    is("granting", pt_options_service(options, "host_add", (void *)host_add, "l(ll)"), 0);
    is("no signature", pt_options_service(options, "host_add", (void *)host_add, "long"), PT_E_ARGUMENT);
    pt_options_deadline(options, 20000);
    pt_options_heap(options, 65536);
    domain = pt_domain_new(image, options), beside = pt_domain_new(image, options);
    if (!domain || !beside) {
        printf("no domain: %s\n", pt_error_message());
        return 1;
    }
    is("integers", PT_SYM(domain, int, "i(ii)", add, (int, int))(2, -3), -1);
    is("numbers", 2 * PT_SYM(domain, double, "d(d)", half, (double))(5), 5);
    is("an import that is open", PT_SYM(domain, int, "i(i)", call_other, (int))(1), 5000);
    is("no export", pt_domain_sym(domain, "nobody", "v()") != NULL, 0);
    is("another type", pt_domain_sym(domain, "half", "i(i)") != NULL, 0);
    ended("nothing wrong", PT_FAULT_NONE);
    access_wrong();
    heap();
    control_wrong();
    services();
    peers(image, options);
    freed_inside(image, options);
    many(image, options);
    images();
    bits();
    puts(failed ? "extension: failed" : "extension: all held");
    return failed;
}
