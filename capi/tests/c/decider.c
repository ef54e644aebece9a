/* Deciders that are functions of the host and domains, and grants that are taken back. */
#include "check.h"
#include <errno.h>
#include <sys/syscall.h>

static int asked;
static int decide(void *user, pt_question *question)
{
    CHECK(user == &asked && question->size == sizeof *question && !strcmp(question->domain, "tenant"));
    asked++;
    if (question->call) {
        CHECK(!question->service && question->call->size == sizeof *question->call);
        if (question->call->number == SYS_open) {
            CHECK(!strcmp(question->call->path, "/etc/passwd"));
            return EROFS;
        }
        if (question->call->number == SYS_getpid) {
            question->call->result = 4711;
            return PT_EMULATE;
        }
        question->reason = "no such thing";
        return PT_KILL;
    }
    CHECK(!strcmp(question->service, "twice") && question->integers == 1 && question->floats == 0);
    switch (question->integer[0]) {
    case 1: return EPERM;
    case 2: question->result = -2; return PT_EMULATE;
    case 3: question->reason = "three"; return PT_KILL;
    case 4: return PT_KILL;
    case 5: return 123456; /* no errno, still a denial */
    }
    return PT_ALLOW;
}

static pt_domain *open_file(const char *file, const char *name, pt_options *options)
{
    pt_image *image = pt_image_load(file);
    CHECK(image && pt_options_name(options, name) == 0);
    pt_domain *domain = pt_domain_new(image, options);
    CHECK(domain && pt_image_free(image) == 0);
    return domain;
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    pt_options *options = pt_options_new();
    CHECK(pt_options_service(options, "twice", (void *)twice, "i(i)") == 0 && pt_options_deadline(options, 0) == 0);
    CHECK(pt_options_decider(options, decide, &asked) == 0);
    pt_domain *domain = open_file(argv[1], "tenant", options);
    int (*ask)(int) = PT_SYM(domain, int, ask, (int));
    long (*call)(long) = PT_SYM(domain, long, call, (long));
    void (*set_polite)(int) = PT_SYM(domain, void, set_polite, (int));
    CHECK(ask && call && set_polite);

    CHECK(ask(21) == 42 && ask(1) == 0 && ask(2) == -2 && ask(5) == 0 && !pt_fault_last());
    CHECK(call(SYS_open) == -EROFS && call(SYS_getpid) == 4711 && !pt_fault_last());
    CHECK(ask(3) == 0 && strstr(pt_fault_last()->message, "three"));
    expect(PT_FAULT_KILLED);
    CHECK(pt_domain_reset(domain) == 0 && ask(4) == 0 && strstr(pt_fault_last()->message, "the host's policy says no"));
    expect(PT_FAULT_KILLED);
    CHECK(pt_domain_reset(domain) == 0 && call(SYS_mkdir) == 0 && strstr(pt_error_message(), "no such thing"));
    expect(PT_FAULT_KILLED);
    CHECK(pt_domain_reset(domain) == 0 && asked == 9);
    uint64_t denied, failures;
    CHECK(pt_domain_decisions(domain, &denied, &failures) == 0 && denied == 4 && failures == 0);
    CHECK(pt_domain_set_decider(domain, NULL, NULL) == 0 && ask(1) == 2 && asked == 9);

    /* A module decides, breaks, and is as new after a reset. */
    pt_options *plain = pt_options_new();
    CHECK(pt_options_deadline(plain, 0) == 0);
    pt_domain *judge = open_file(argv[2], "judge", plain);
    CHECK(pt_domain_set_decider_module(domain, judge) == 0);
    CHECK(ask(20) == 40 && ask(21) == 0 && call(SYS_getpid) == -13);
    CHECK(ask(8) == 0 && strstr(pt_error_message(), "eight is too much"));
    expect(PT_FAULT_KILLED);
    CHECK(pt_domain_reset(domain) == 0 && ask(10) == 0 && ask(20) == 0 && !pt_fault_last());
    CHECK(pt_domain_poisoned(judge) == 1 && pt_domain_poisoned(domain) == 0);
    CHECK(pt_domain_decisions(domain, NULL, &failures) == 0 && failures == 2);
    CHECK(pt_domain_reset(judge) == 0 && ask(20) == 40);
    CHECK(pt_options_decider_module(options, judge) == 0);
    pt_domain *another = open_file(argv[1], "another", options);
    int (*other)(int) = PT_SYM(another, int, ask, (int));
    CHECK(other(20) == 40 && other(21) == 0);
    CHECK(pt_domain_set_decider_module(domain, another) == PT_E_MISSING && strstr(pt_error_message(), "decide"));
    CHECK(pt_domain_set_decider_module(domain, NULL) == PT_E_HANDLE && ask(21) == 0);
    CHECK(pt_domain_free(judge) == 0 && other(20) == 0 && !pt_fault_last());
    CHECK(pt_domain_set_decider(domain, NULL, NULL) == 0);

    /* Grants. */
    char text[400];
    int64_t length = pt_domain_grants(domain, text, sizeof text);
    CHECK(length == (int64_t)strlen(text) && strstr(text, "service   twice\n") && strstr(text, "decider   nobody"));
    CHECK(pt_domain_grants(domain, text, 7) == length && !strcmp(text, "domain") && pt_domain_grants(domain, NULL, 0) == length);
    set_polite(1);
    CHECK(pt_domain_revoke(domain, PT_GRANT_SERVICE, "twice", 1000000) == PT_RETURNED && ask(21) == 0);
    pt_repossession lost = { 0 };
    CHECK(pt_domain_repossessed(domain, 0, &lost) == 0);
    CHECK(pt_domain_restore(domain, PT_GRANT_SERVICE, "twice") == 0 && ask(21) == 42);
    set_polite(0);
    CHECK(pt_domain_revoke(domain, PT_GRANT_SERVICE, "twice", 1000000) == PT_TAKEN && ask(21) == 0);
    CHECK(pt_domain_repossessed(domain, 0, &lost) == 1 && lost.size == sizeof lost && lost.kind == PT_GRANT_SERVICE);
    CHECK(!strcmp(lost.name, "twice") && strstr(lost.why, "returned 5") && pt_domain_repossessed(domain, 1, NULL) == 0);
    CHECK(pt_domain_revoke(domain, PT_GRANT_SERVICE, "twice", 0) == PT_E_MISSING && strstr(pt_error_message(), "twice"));
    CHECK(pt_domain_revoke(domain, PT_GRANT_DIRECTORY, "/data", 0) == PT_E_MISSING);
    CHECK(pt_domain_revoke(domain, PT_GRANT_DESCRIPTOR, "1", 0) == PT_TAKEN);
    CHECK(pt_domain_revoke(domain, PT_GRANT_DESCRIPTOR, "one", 0) == PT_E_ARGUMENT && pt_domain_revoke(domain, 9, "x", 0) == PT_E_ARGUMENT);
    CHECK(pt_domain_revoke(domain, PT_GRANT_SERVICE, NULL, 0) == PT_E_ARGUMENT);
    pt_shared *area = pt_shared_new(100);
    pt_offset place = pt_domain_expose(domain, area, PT_READ_ONLY);
    char where[16];
    snprintf(where, sizeof where, "0x%x", place);
    CHECK(place && pt_domain_revoke(domain, PT_GRANT_AREA, "no number", 0) == PT_E_ARGUMENT);
    CHECK(pt_domain_revoke(domain, PT_GRANT_AREA, where, 0) == PT_TAKEN && pt_domain_revoke(domain, PT_GRANT_AREA, where, 0) == PT_E_MISSING);
    CHECK(pt_domain_repossessed(domain, 2, &lost) == 1 && lost.kind == PT_GRANT_AREA && !strcmp(lost.name, where));
    CHECK(pt_shared_free(area) == 0);
    CHECK(pt_domain_reset(domain) == 0 && pt_domain_repossessed(domain, 0, NULL) == 0 && ask(21) == 0);
    CHECK(pt_domain_free(domain) == 0 && pt_domain_free(another) == 0);
    return 0;
}
