/* Packets that begin with something else than Ethernet's header: written, read, judged, spread. */
#include "check.h"
#include "packets.h"
#include <unistd.h>

/* Two packets of IPv4 without a link header, to the ports 50 and 51. */
static void make(const char *path, int format)
{
    pt_writer *writer = pt_writer_new(path, format, NULL);
    CHECK(writer && pt_writer_link(writer, PT_LINK_RAW) == 0);
    CHECK(pt_writer_link(writer, 10) == PT_E_ARGUMENT && pt_writer_link(writer, -1) == PT_E_ARGUMENT);
    for (int i = 0; i < 2; i++) {
        unsigned char bytes[60];
        udp(bytes, 50 + i);
        CHECK(pt_writer_packet(writer, 5000, bytes + 14, 46, 46) == 0);
    }
    CHECK(pt_writer_link(writer, PT_LINK_ETHERNET) == 0);
    unsigned char bytes[60];
    udp(bytes, 50);
    int other = pt_writer_packet(writer, 5000, bytes, 60, 60);
    CHECK(other == (format == PT_FORMAT_PCAPNG ? 0 : PT_E_FILE));
    CHECK(pt_writer_free(writer) == 0);
}

/* How many of the file's packets of this link a filter for it accepts. */
static int accepted(const char *path, const char *expression, int link)
{
    pt_source *source = pt_source_file(path);
    CHECK(source && pt_source_link(source) == PT_LINK_RAW);
    pt_filter *filter = pt_filter_new_for(expression, link, NULL, 0, NULL);
    CHECK(filter && pt_source_watch(source, pt_filter_domain(filter)) == 0);
    pt_writer *copy = pt_writer_new("copy.pcap", PT_FORMAT_PCAP_MICRO, NULL);
    pt_packet packet;
    int got, count = 0;
    while ((got = pt_source_next(source, &packet)) == 1) {
        if ((int)packet.link != link)
            continue;
        CHECK(packet.length == (link == PT_LINK_RAW ? 46 : 60) && packet.reserved[0] == 0);
        if (pt_filter_run_at(filter, packet.at, packet.length, packet.wire_length) > 0) {
            CHECK(pt_writer_copy(copy, source, &packet) == 0);
            count++;
        }
    }
    CHECK(got == PT_E_END && pt_writer_free(copy) == 0);
    if (count > 0) {
        pt_source *again = pt_source_file("copy.pcap");
        CHECK(again && pt_source_link(again) == link && pt_source_next(again, &packet) == 1);
        CHECK(packet.time == 5000 && (int)packet.link == link);
        packet.link = 10;
        unsigned char byte;
        CHECK(pt_source_read(again, &packet, &byte, 1) == PT_E_ARGUMENT);
    }
    return count;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 && chdir(argv[1]) == 0);
    make("raw.pcap", PT_FORMAT_PCAP);
    make("raw.pcapng", PT_FORMAT_PCAPNG);
    for (int i = 0; i < 2; i++) {
        const char *path = i ? "raw.pcapng" : "raw.pcap";
        CHECK(accepted(path, "udp dst port 50", PT_LINK_RAW) == 1);
        CHECK(accepted(path, "udp", PT_LINK_RAW) == 2);
        CHECK(accepted(path, "udp dst port 50", PT_LINK_ETHERNET) == i);
        pt_source *source = pt_source_file(path);
        const char *const consumers[] = { "some.pcap=udp dst port 51" };
        pt_demux *demux = pt_demux_to(source, consumers, 1, 0);
        CHECK(demux);
        pt_packet packet;
        while (pt_source_next(source, &packet) == 1)
            CHECK(pt_demux_packet(demux, &packet) == 0);
        pt_tally tally;
        uint64_t unclaimed;
        CHECK(pt_demux_tally(demux, 0, &tally) == 1 && tally.packets == 1);
        CHECK(pt_demux_unclaimed(demux, &unclaimed) == 0 && unclaimed == 1u + (unsigned)i);
        CHECK(pt_demux_free(demux) == 0);
        CHECK(accepted("some.pcap", "udp", PT_LINK_RAW) == 1);
    }
    CHECK(!pt_filter_new_for("ether host 2:0:0:0:0:1", PT_LINK_RAW, NULL, 0, NULL) && pt_error_code() == PT_E_SOURCE);
    CHECK(!pt_filter_new_for("udp", 99, NULL, 0, NULL) && pt_error_code() == PT_E_ARGUMENT);
    return 0;
}
