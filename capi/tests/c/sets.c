/* Sets of filters on packets where they lie: in areas, and of a source that is watched while the
 * set's code is made anew. */
#include "check.h"
#include "packets.h"
#include <unistd.h>

int main(int argc, char **argv)
{
    CHECK(argc == 2 && chdir(argv[1]) == 0);
    const int ports[] = { 53, 80, 9, 53 };
    capture("all.pcap", ports, 4);
    pt_filter *dns = pt_filter_new("udp port 53", NULL), *low = pt_filter_new("dst portrange 1-100", NULL);
    pt_filter_set *set = pt_filter_set_new();
    pt_source *source = pt_source_file("all.pcap");
    CHECK(dns && low && source);
    uint64_t filters = 9, compilations = 9;
    CHECK(pt_filter_set_counters(set, &filters, &compilations) == 0 && filters == 0 && compilations == 0);
    CHECK(pt_filter_set_counters(set, NULL, NULL) == 0);

    int64_t names = pt_filter_set_add(set, dns, 1, 5, 0);
    CHECK(names >= 0 && pt_filter_set_watch(set, source) == 0);
    pt_packet packet, some[40] = { { 0 } };
    pt_domain *domain = pt_filter_set_domain(set);
    CHECK(pt_source_next(source, &packet) == 1);
    CHECK(pt_filter_set_find_at(set, packet.at, packet.length, packet.wire_length) == names);

    /* Another shape: the code is made anew, in another domain, and sees the source, too. */
    int64_t rest = pt_filter_set_add(set, low, 1, 0, 0);
    CHECK(pt_source_next(source, &packet) == 1);
    CHECK(pt_filter_set_find_at(set, packet.at, packet.length, packet.wire_length) == rest);
    CHECK(pt_filter_set_counters(set, &filters, &compilations) == 0 && filters == 2 && compilations == 2);
    CHECK(pt_filter_set_domain(set) != domain && pt_domain_name(domain)[0] == 0 && pt_error_code() == PT_E_HANDLE);

    /* Another filter in its place: packets find it by the same number, and none waits for code. */
    CHECK(pt_filter_set_replace(set, (uint32_t)rest, dns, 1, 9, 0) == 0);
    CHECK(pt_filter_set_find_at(set, packet.at, packet.length, packet.wire_length) == PT_E_MISSING);
    CHECK(pt_filter_set_replace(set, (uint32_t)rest, low, 2, 9, 0) == PT_E_REFUSED && strstr(pt_error_message(), "owner 1"));
    CHECK(pt_filter_set_replace(set, 77, low, 1, 0, 0) == PT_E_MISSING && strstr(pt_error_message(), "77"));
    CHECK(pt_filter_set_hold(set, 1) == 0 && pt_filter_set_hold(NULL, 1) == PT_E_HANDLE);
    CHECK(pt_filter_set_replace(set, (uint32_t)rest, low, 1, 0, 0) == 0);
    CHECK(pt_filter_set_counters(set, NULL, &compilations) == 0 && compilations == 2);
    CHECK(pt_filter_set_hold(set, 0) == 0);
    CHECK(pt_filter_set_find_at(set, packet.at, packet.length, packet.wire_length) == rest);
    domain = pt_filter_set_domain(set);
    CHECK(pt_filter_set_counters(set, &filters, &compilations) == 0 && filters == 2 && compilations == 2);

    /* A place where there is nothing is a fault, and does no harm to the next packet. */
    CHECK(pt_filter_set_find_at(set, 0xe0000000u, 60, 60) == PT_E_FAULT && pt_fault_last()->kind == PT_FAULT_READ);
    CHECK(pt_filter_set_find_at(set, packet.at, packet.length, packet.wire_length) == rest);

    /* Many at once, in an area. */
    pt_shared *area = pt_shared_new(4096);
    unsigned char bytes[60];
    pt_offset place = pt_filter_set_lend(set, area);
    CHECK(place);
    int64_t found[40];
    for (unsigned i = 0; i < 40; i++) {
        udp(bytes, i % 3 ? i % 3 == 1 ? 53 : 1 : 200);
        CHECK(pt_shared_write(area, 100 * i, bytes, sizeof bytes) == 0);
        some[i].at = place + 100 * i;
        some[i].length = some[i].wire_length = 60;
    }
    CHECK(pt_filter_set_find_all(set, some, 40, found) == 0);
    for (unsigned i = 0; i < 40; i++)
        CHECK(found[i] == (i % 3 ? i % 3 == 1 ? names : rest : PT_E_MISSING));
    CHECK(pt_filter_set_find_all(set, NULL, 0, NULL) == 0);
    CHECK(pt_filter_set_find_all(set, NULL, 1, found) == PT_E_ARGUMENT);
    CHECK(pt_filter_set_find_all(set, some, 1, NULL) == PT_E_ARGUMENT);
    some[1].at = 0xe0000000u;
    CHECK(pt_filter_set_find_all(set, some, 2, found) == PT_E_FAULT && pt_fault_last());
    CHECK(pt_filter_set_find_all(set, some + 2, 1, found) == 0 && found[0] == rest);

    /* Who else. */
    uint32_t all[2] = { 99, 99 };
    udp(bytes, 53);
    CHECK(pt_filter_set_matches(set, bytes, 60, 60, all, 1) == 2 && all[0] == (uint32_t)names && all[1] == 99);
    CHECK(pt_filter_set_matches(set, bytes, 60, 60, all, 2) == 2 && all[1] == (uint32_t)rest);
    CHECK(pt_filter_set_matches(set, bytes, 60, 60, NULL, 0) == 2);
    CHECK(pt_filter_set_matches(set, bytes, 60, 60, NULL, 1) == PT_E_ARGUMENT);
    static char text[20000];
    int64_t length = pt_filter_set_show(set, text, sizeof text);
    CHECK(length > 20 && strlen(text) == (size_t)length);

    /* Options of an expression. */
    pt_filter *with = pt_filter_new_with("ip broadcast", "255.255.255.0", 77, NULL);
    uint64_t at = 0;
    bytes[30] = 10;
    bytes[33] = 255;
    CHECK(with && pt_filter_run(with, bytes, 60, 60) == 77);
    CHECK(!pt_filter_new_with("ip broadcast", NULL, 0, &at) && pt_error_code() == PT_E_SOURCE);
    CHECK(!pt_filter_new_with("ip", "255.255", 0, NULL) && pt_error_code() == PT_E_ARGUMENT);

    CHECK(pt_filter_set_watch(set, NULL) == PT_E_HANDLE && !pt_filter_set_lend(set, NULL) && pt_error_code() == PT_E_HANDLE);
    domain = pt_filter_set_domain(set);
    CHECK(pt_filter_set_free(set) == 0 && pt_domain_poisoned(domain) == PT_E_HANDLE && !pt_filter_set_domain(set));
    CHECK(pt_filter_set_find_at(set, place, 60, 60) == PT_E_HANDLE && pt_filter_set_show(set, text, 1) == PT_E_HANDLE);
    CHECK(pt_source_free(source) == 0 && pt_shared_free(area) == 0 && pt_filter_free(with) == 0);
    CHECK(pt_filter_free(dns) == 0 && pt_filter_free(low) == 0);
    puts("sets: fine");
    return 0;
}
