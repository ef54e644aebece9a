/* Filters of packets: expressions, what is wrong with them, packets that are copied and packets in
 * shared memory, sets. */
#include "check.h"
#include "packets.h"

int main(void)
{
    unsigned char dns[60], web[60];
    udp(dns, 53);
    udp(web, 80);
    uint64_t at = 99;
    CHECK(!pt_filter_new("udp prt 53", &at) && pt_error_code() == PT_E_SOURCE && at == 4);
    CHECK(strstr(pt_error_message(), "^^^") && strstr(pt_error_message(), "did you mean `port`?"));
    CHECK(!pt_filter_new(NULL, NULL) && pt_error_code() == PT_E_ARGUMENT);
    CHECK(!pt_filter_classic("1\n40 0 0 12\n", &at) && pt_error_code() == PT_E_SOURCE && at == 1);

    pt_filter *filter = pt_filter_new("udp port 53", NULL);
    CHECK(filter && pt_filter_run(filter, dns, 60, 60) > 0 && pt_filter_run(filter, web, 60, 60) == 0);
    CHECK(pt_filter_run(filter, dns, 30, 60) == 0);
    CHECK(pt_filter_run(filter, NULL, 30, 60) == PT_E_ARGUMENT);
    char text[400];
    CHECK(pt_filter_show(filter, text, sizeof text) == (int64_t)strlen(text) && strstr(text, "accept"));
    pt_filter *classic = pt_filter_classic("4\n40 0 0 12\n21 0 1 2048\n6 0 0 77\n6 0 0 0\n", NULL);
    CHECK(classic && pt_filter_run(classic, web, 60, 60) == 77);

    /* Where it lies: the filter may read it, and not what lies elsewhere. */
    pt_shared *area = pt_shared_new(4096);
    CHECK(area);
    memcpy((char *)pt_shared_address(area) + 100, dns, 60);
    CHECK(pt_filter_run_at(filter, 0xe0000000u, 60, 60) == PT_E_FAULT);
    pt_offset place = pt_domain_expose(pt_filter_domain(filter), area, PT_READ_ONLY);
    CHECK(place && pt_filter_run_at(filter, place + 100, 60, 60) > 0);
    CHECK(pt_filter_run_at(filter, place, 60, 60) == 0);

    /* Sets: by priority, and nobody's packets are stolen. */
    pt_filter_set *set = pt_filter_set_new();
    pt_filter *all = pt_filter_new("", NULL);
    CHECK(set && pt_filter_set_find(set, dns, 60, 60) == PT_E_MISSING);
    int64_t everything = pt_filter_set_add(set, all, 1, 0, 0);
    CHECK(everything >= 0 && pt_filter_set_find(set, dns, 60, 60) == everything);
    CHECK(pt_filter_set_add(set, filter, 2, 5, 0) == PT_E_REFUSED && strstr(pt_error_message(), "owner 1"));
    int64_t some = pt_filter_set_add(set, filter, 2, 5, 1);
    CHECK(some > everything && pt_filter_free(filter) == 0);
    CHECK(pt_filter_set_find(set, dns, 60, 60) == some && pt_filter_set_find(set, web, 60, 60) == everything);
    CHECK(pt_filter_set_remove(set, (uint32_t)some) == 0 && pt_filter_set_remove(set, (uint32_t)some) == PT_E_MISSING);
    CHECK(pt_filter_set_find(set, dns, 60, 60) == everything);

    CHECK(pt_filter_free(filter) == PT_E_HANDLE && pt_filter_run(filter, dns, 60, 60) == PT_E_HANDLE);
    CHECK(pt_filter_free(all) == 0 && pt_filter_free(classic) == 0 && pt_filter_set_free(set) == 0);
    CHECK(pt_shared_free(area) == 0);
    puts("filters: fine");
    return 0;
}
