/* Counters, their text, and the hot window. */
#include "check.h"

int main(int argc, char **argv)
{
    (void)argc;
    pt_domain *one = kit_domain(argv[1], 0), *two = kit_domain(argv[1], 0);
    int (*load)(pt_offset) = PT_SYM(one, int, load, (pt_offset));
    pt_counters counters = { .size = sizeof counters };
    CHECK(pt_domain_counters(one, &counters) == 0 && counters.size == sizeof counters);
    uint64_t calls = counters.calls;
    CHECK(load(0) == 0);
    expect(PT_FAULT_NULL_POINTER);
    CHECK(pt_domain_reset(one) == 0);
    CHECK(pt_domain_counters(one, &counters) == 0 && counters.calls > calls && counters.faults == 1);
    CHECK(counters.denied == 0 && counters.refused == 0 && counters.system_calls == 0 && counters.moves == 0);
    /* An older host knows less of the structure. */
    struct {
        size_t size;
        uint64_t calls, other;
    } old = { 16, 0, 77 };
    CHECK(pt_domain_counters(one, (pt_counters *)&old) == 0 && old.calls == counters.calls && old.other == 77 && old.size == 16);
    old.size = 3;
    CHECK(pt_domain_counters(one, (pt_counters *)&old) == PT_E_ARGUMENT && pt_domain_counters(one, NULL) == PT_E_ARGUMENT);
    CHECK(pt_domain_counters(NULL, &counters) == PT_E_HANDLE && pt_domain_pages(NULL) == PT_E_HANDLE);
    CHECK(pt_domain_pages(one) >= 0);
    CHECK(pt_domain_shared_pages(one) == 0 && pt_domain_shared_pages(NULL) == PT_E_HANDLE);

    int64_t length = pt_metrics(NULL, 0, 0);
    CHECK(length > 500);
    char *text = malloc(length + 1000);
    CHECK(pt_metrics(text, length + 1000, 0) > 500 && strstr(text, "postern_faults_total{domain=\""));
    CHECK(strstr(text, "\npostern_domains 2\n") && !strstr(text, "postern_private_pages"));
    CHECK(pt_metrics(text, length + 1000, PT_BY_IMAGE | PT_PAGES) > 500 && strstr(text, "postern_private_pages{image=\""));
    CHECK(pt_metrics(text, 10, 0) > 500 && strlen(text) == 9);
    CHECK(pt_metrics(NULL, 5, 0) == PT_E_ARGUMENT && pt_metrics(text, 10, 4) == PT_E_ARGUMENT);

    if (strcmp(pt_hot_window_state(), "taken") == 0) {
        CHECK(pt_domain_hot(one) == 1 && pt_domain_hot(two) == 0 && pt_hot_window_domain() == one);
        CHECK(pt_domain_set_placement(two, PT_PLACE_HOT) == 0 && pt_domain_hot(two) == 1 && pt_domain_hot(one) == 0);
        CHECK(pt_hot_window_domain() == two && pt_domain_counters(two, &counters) == 0 && counters.moves == 1);
        CHECK(load(0) == 0);
        expect(PT_FAULT_NULL_POINTER);
        CHECK(pt_domain_set_placement(two, PT_PLACE_COLD) == 0 && !pt_hot_window_domain() && strcmp(pt_hot_window_state(), "free") == 0);
    } else {
        CHECK(strcmp(pt_hot_window_state(), "occupied") == 0 && !pt_hot_window_domain());
    }
    CHECK(pt_domain_set_placement(one, 3) == PT_E_ARGUMENT && pt_domain_set_placement(NULL, 0) == PT_E_HANDLE);
    CHECK(pt_domain_free(one) == 0 && pt_domain_free(two) == 0 && pt_domain_hot(two) == PT_E_HANDLE);
    free(text);
    return 0;
}
