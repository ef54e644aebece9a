/* Domains that call each other, bound before and after they are made. */
#include "check.h"

static int faults;
static void on_fault(const pt_fault *fault, void *user) { faults += fault->kind && user == &faults; }

static pt_domain *open_file(const char *file, pt_options *options)
{
    pt_image *image = pt_image_load(file);
    CHECK(image);
    pt_domain *domain = pt_domain_new(image, options);
    CHECK(domain && pt_image_free(image) == 0);
    return domain;
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    pt_options *plain = pt_options_new(), *options = pt_options_new(), *later = pt_options_new();
    CHECK(pt_options_deadline(plain, 0) == 0 && pt_options_deadline(options, 0) == 0);
    CHECK(pt_options_on_fault(plain, on_fault, &faults) == 0);
    pt_domain *answers = open_file(argv[2], plain);

    CHECK(pt_options_peer(options, "answer", answers, "none", 0, 0) == PT_E_MISSING);
    CHECK(pt_options_peer(options, "answer", answers, "answer", 5000, 100000) == 0);
    pt_domain *asks = open_file(argv[1], options);
    long (*ask)(long) = PT_SYM(asks, long, ask, (long));
    CHECK(ask && ask(21) == 42 && ask(4) == 8);
    CHECK(ask(15) == -10);
    CHECK(ask(13) == -1 && ask(21) == -2 && faults == 1 && pt_domain_poisoned(answers) == 1 && pt_domain_poisoned(asks) == 0);
    CHECK(pt_domain_reset(answers) == 0 && ask(21) == 42);
    /* Without a deadline of its own, but the export has one. */
    CHECK(ask(14) == -8 && faults == 2 && pt_domain_reset(answers) == 0 && ask(21) == 42);

    CHECK(pt_options_peer_open(later, "answer") == 0);
    pt_domain *open = open_file(argv[1], later);
    ask = PT_SYM(open, long, ask, (long));
    CHECK(ask && ask(21) == -5);
    CHECK(pt_domain_bind_peer(open, "answer", answers, "other", 0, 0) == PT_E_SIGNATURE);
    CHECK(pt_domain_bind_peer(open, "question", answers, "answer", 0, 0) == PT_E_UNRESOLVED);
    CHECK(pt_domain_bind_peer(open, "answer", answers, "answer", 0, 0) == 0 && ask(21) == 42);
    CHECK(pt_domain_free(answers) == 0 && ask(21) == -4);
    ask = PT_SYM(asks, long, ask, (long));
    CHECK(ask(21) == -4);
    CHECK(pt_domain_free(open) == 0 && pt_domain_free(asks) == 0);
    CHECK(pt_options_free(plain) == 0 && pt_options_free(options) == 0 && pt_options_free(later) == 0);
    return 0;
}
