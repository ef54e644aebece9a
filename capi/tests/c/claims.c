/* Types: what a file claims copies nothing of the host's, and a _Bool is 0 or 1 whoever made it. */
#include "check.h"

#define KEY 0x6b65792d6b657921u

/* The key is in the frame that calls, where the words lie that a callee with more parameters would
 * have. */
__attribute__((noinline)) static long with_a_key(long (*add)(int, int))
{
    volatile uint64_t keys[16];
    for (int i = 0; i < 16; i++) keys[i] = KEY;
    long sum = add(2, 3);
    return keys[0] == KEY ? sum : -1;
}

static void claims(pt_domain *domain)
{
    char text[32];
    CHECK(pt_domain_signature(domain, "greedy", text, sizeof text) == 19 && !strcmp(text, "l(llllllllllllllll)"));
    CHECK(pt_domain_signature(domain, "greedy", text, 4) == 19 && !strcmp(text, "l(l") && pt_domain_signature(domain, "greedy", NULL, 0) == 19);
    CHECK(pt_domain_signature(domain, "silent", text, sizeof text) == PT_E_UNTYPED);
    CHECK(pt_domain_signature(domain, "none", text, sizeof text) == PT_E_MISSING && pt_domain_signature(NULL, "add", text, 4) == PT_E_HANDLE);
    /* It says that it takes sixteen words: the host says two ints. */
    CHECK(!PT_SYM(domain, long, greedy, (int, int)) && pt_error_code() == PT_E_SIGNATURE);
    CHECK(strstr(pt_error_message(), "l(ii)") && strstr(pt_error_message(), "l(llllllllllllllll)"));
    /* The same function under a name of which the file says nothing: two ints are what it gets. It
     * would give 1 if it saw the key. */
    long (*silent)(int, int) = PT_SYM(domain, long, silent, (int, int));
    CHECK(silent && with_a_key(silent) == 5);
    CHECK(!pt_domain_sym(domain, "add", NULL) && pt_error_code() == PT_E_ARGUMENT);
}

/* Neither compiler looks at more than one byte of these, and trusts that it is 0 or 1. */
static int table[2] = {10, 20};

static void bools(pt_domain *domain)
{
    _Bool (*truth)(long) = PT_SYM(domain, _Bool, truth, (long));
    unsigned (*whole)(long) = (unsigned (*)(long))(void *)truth;
    long (*shown)(_Bool) = PT_SYM(domain, long, shown, (_Bool));
    long (*rubbish)(long) = (long (*)(long))(void *)shown;
    long (*seventh)(long, long, long, long, long, long, _Bool) = PT_SYM(domain, long, seventh, (long, long, long, long, long, long, _Bool));
    _Bool (*judged)(long) = PT_SYM(domain, _Bool, judged, (long));
    CHECK(truth && shown && seventh && judged);
    CHECK(!PT_SYM(domain, uint8_t, truth, (long)) && pt_error_code() == PT_E_SIGNATURE);
    const long words[] = {0, 1, 0x80, 0x81, -1, -2, 0x100, 0x7fffff03};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        long word = words[i];
        CHECK(table[truth(word)] == (word & 1 ? 20 : 10) && whole(word) == (word & 1));
        CHECK(rubbish(word) == (word & 1) && shown(word & 1) == (word & 1) && seventh(9, 9, 9, 9, 9, 9, word & 1) == (word & 1));
        int before = judgements[word & 1];
        CHECK(judged(word) == !(word & 1) && judgements[word & 1] == before + 1);
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    pt_domain *domain = kit_domain(argv[1], 0);
    claims(domain);
    bools(domain);
    CHECK(pt_domain_free(domain) == 0);

    /* The same through a module and a namespace. */
    pt_image *image = pt_image_load(argv[1]);
    pt_options *options = kit_options();
    pt_module *module = pt_module_new(image, options);
    CHECK(module && !PT_MODULE_SYM(module, long, greedy, (int, int)) && pt_error_code() == PT_E_SIGNATURE);
    long (*silent)(int, int) = PT_MODULE_SYM(module, long, silent, (int, int));
    CHECK(silent && with_a_key(silent) == 5);
    _Bool (*truth)(long) = PT_MODULE_SYM(module, _Bool, truth, (long));
    CHECK(truth && table[truth(0x80)] == 10 && table[truth(0x81)] == 20);
    claims(pt_module_domain(module));
    pt_namespace *space = pt_namespace_new(image, options, PT_RECOVER_DEFAULT, PT_USE_VECTORS);
    CHECK(space && !PT_NAMESPACE_SYM(space, long, greedy, (int, int)) && pt_error_code() == PT_E_SIGNATURE);
    silent = PT_NAMESPACE_SYM(space, long, silent, (int, int));
    CHECK(silent && with_a_key(silent) == 5);
    truth = PT_NAMESPACE_SYM(space, _Bool, truth, (long));
    CHECK(truth && table[truth(0x80)] == 10 && table[truth(0x81)] == 20);
    CHECK(pt_namespace_create(space, "a.ec", "_Bool odd(int x) { return x & 1; }") == 0);
    _Bool (*odd)(int) = PT_NAMESPACE_SYM(space, _Bool, odd, (int));
    char text[8];
    CHECK(odd && odd(3) && !odd(4) && pt_namespace_signature(space, "odd", text, sizeof text) == 4 && !strcmp(text, "z(i)"));
    CHECK(pt_module_free(module) == 0 && pt_namespace_free(space) == 0);
    CHECK(pt_image_free(image) == 0 && pt_options_free(options) == 0);
    return 0;
}
