/* Packets from files and pipes, judged where they lie, and written again: whole files, damaged
 * ones, and bad arguments. */
#include "check.h"
#include "packets.h"
#include <fcntl.h>
#include <unistd.h>

enum { PACKETS = 9 };

/* Packets to the ports 50, 51 and so on, by the library. */
static void make(const char *path, int format)
{
    pt_writer *writer = pt_writer_new(path, format, "eth7");
    CHECK(writer && pt_writer_origin(writer, "eth8", PT_DIRECTION_OUT) == 0);
    CHECK(pt_writer_origin(writer, NULL, 0) == PT_E_ARGUMENT && pt_writer_origin(writer, "x", 6) == PT_E_ARGUMENT);
    for (int i = 0; i < PACKETS; i++) {
        unsigned char bytes[60];
        udp(bytes, 50 + i);
        CHECK(pt_writer_packet(writer, 1700000000000000000u + (unsigned)i, bytes, 60, 90) == 0);
    }
    CHECK(pt_writer_free(writer) == 0);
    CHECK(pt_writer_free(writer) == PT_E_HANDLE && pt_writer_flush(writer) == PT_E_HANDLE);
}

/* Gives all packets of a source that a filter accepts to a writer; how many. */
static int copy(pt_source *source, const char *expression, pt_writer *writer)
{
    pt_filter *filter = pt_filter_new(expression, NULL);
    CHECK(filter && pt_source_watch(source, pt_filter_domain(filter)) == 0);
    int accepted = 0, got;
    uint64_t received, dropped;
    pt_packet packet;
    for (unsigned i = 0; (got = pt_source_next(source, &packet)) == 1; i++) {
        unsigned char bytes[100] = { 0 };
        CHECK(packet.time == 1700000000000000000u + i && packet.length == 60 && packet.wire_length == 90);
        CHECK(pt_source_read(source, &packet, bytes, sizeof bytes) == 60 && bytes[37] == 50 + i);
        CHECK(pt_source_read(source, &packet, bytes, 13) == 13 && pt_source_read(source, &packet, NULL, 13) == PT_E_ARGUMENT);
        int64_t verdict = pt_filter_run_at(filter, packet.at, packet.length, packet.wire_length);
        CHECK(verdict >= 0 && (verdict > 0) == (pt_filter_run(filter, bytes, 60, 90) > 0));
        if (verdict > 0) {
            CHECK(pt_writer_copy(writer, source, &packet) == 0);
            accepted++;
        }
    }
    CHECK(got == PT_E_END && pt_error_code() != PT_E_END && pt_source_next(source, &packet) == PT_E_END);
    CHECK(pt_source_counters(source, &received, &dropped) == 0 && received == PACKETS && dropped == 0);
    CHECK(pt_filter_free(filter) == 0 && pt_source_free(source) == 0);
    return accepted;
}

static long size_of(const char *path)
{
    FILE *file = fopen(path, "rb");
    CHECK(file && fseek(file, 0, SEEK_END) == 0);
    long size = ftell(file);
    fclose(file);
    return size;
}

/* What is there is given, and then the error comes, and stays. */
static void damaged(const char *path)
{
    CHECK(truncate(path, size_of(path) - 30) == 0);
    pt_source *source = pt_source_file(path);
    pt_packet packet;
    CHECK(source);
    for (int i = 0; i < PACKETS - 1; i++)
        CHECK(pt_source_next(source, &packet) == 1);
    CHECK(pt_source_next(source, &packet) == PT_E_FILE && pt_error_code() == PT_E_FILE && *pt_error_message());
    uint64_t at = 0, size = 0;
    CHECK(pt_source_progress(source, &at, &size) == 1 && at <= size && size == (uint64_t)size_of(path));
    CHECK(pt_source_free(source) == 0);
}

static void bad(const char *path)
{
    pt_packet packet = { 0 };
    pt_filter *filter = pt_filter_new("", NULL);
    CHECK(!pt_source_file(NULL) && pt_error_code() == PT_E_ARGUMENT);
    CHECK(!pt_source_file("/nothing/here") && pt_error_code() == PT_E_FILE && strstr(pt_error_message(), "/nothing/here"));
    CHECK(!pt_source_file("/proc/version") && pt_error_code() == PT_E_FILE);
    CHECK(!pt_source_fd(-1) && pt_error_code() == PT_E_ARGUMENT);
    CHECK(!pt_source_live(NULL, 0, 0, 0) && pt_error_code() == PT_E_ARGUMENT);
    CHECK(!pt_source_live("lo", 16, 0, 0) && pt_error_code() == PT_E_ARGUMENT && strstr(pt_error_message(), "PT_LIVE_NOT"));
    CHECK(!pt_source_live("no such one", 0, 0, 0) && pt_error_code() == PT_E_SYSTEM);
    CHECK(pt_source_next(NULL, &packet) == PT_E_HANDLE);
    pt_source *source = pt_source_file(path);
    CHECK(source && pt_source_next(source, NULL) == PT_E_ARGUMENT && pt_source_next(source, &packet) == 1);
    CHECK(pt_source_watch(source, NULL) == PT_E_HANDLE && pt_source_watch(NULL, pt_filter_domain(filter)) == PT_E_HANDLE);
    /* A filter is not a source, and the other way around. */
    CHECK(pt_source_next((pt_source *)filter, &packet) == PT_E_HANDLE && pt_filter_free((pt_filter *)source) == PT_E_HANDLE);
    /* Of a domain that does not watch. */
    CHECK(pt_filter_run_at(filter, packet.at, packet.length, packet.wire_length) >= 0);
    pt_filter *reads = pt_filter_new("udp", NULL);
    CHECK(pt_filter_run_at(reads, packet.at, packet.length, packet.wire_length) == PT_E_FAULT);
    CHECK(pt_fault_last() && pt_fault_last()->kind == PT_FAULT_READ && pt_error_code() == PT_E_FAULT);
    /* Packets that the source never gave. */
    char bytes[100];
    packet.at = 4;
    CHECK(pt_source_read(source, &packet, bytes, sizeof bytes) == PT_E_RANGE);
    packet.direction = 6;
    CHECK(pt_source_read(source, &packet, bytes, sizeof bytes) == PT_E_ARGUMENT);
    packet.direction = 0;
    packet.length = 0xffffffffu;
    CHECK(pt_source_read(source, &packet, bytes, sizeof bytes) == PT_E_ARGUMENT);
    CHECK(pt_source_read(source, NULL, bytes, sizeof bytes) == PT_E_ARGUMENT);
    CHECK(pt_source_send(source, NULL, bytes, 60) == PT_E_ARGUMENT && strstr(pt_error_message(), "no interface"));
    CHECK(pt_source_free(source) == 0 && pt_source_free(source) == PT_E_HANDLE);

    CHECK(!pt_writer_new(NULL, 0, NULL) && pt_error_code() == PT_E_ARGUMENT);
    CHECK(!pt_writer_new("/nothing/here", 0, NULL) && pt_error_code() == PT_E_FILE);
    CHECK(!pt_writer_new(path, 9, NULL) && pt_error_code() == PT_E_ARGUMENT && size_of(path) > 100);
    CHECK(!pt_writer_fd(-1, 0, NULL) && pt_error_code() == PT_E_ARGUMENT);
    /* What a full device does not take is an error at the end, at the latest. */
    pt_writer *full = pt_writer_new("/dev/full", 0, NULL);
    CHECK(full && pt_writer_packet(full, 0, bytes, 60, 60) == 0 && pt_writer_packet(full, 0, NULL, 60, 60) == PT_E_ARGUMENT);
    CHECK(pt_writer_flush(full) == PT_E_FILE && pt_writer_free(full) == PT_E_FILE && strstr(pt_error_message(), "space"));
    CHECK(pt_filter_free(filter) == 0 && pt_filter_free(reads) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 && chdir(argv[1]) == 0);
    make("all.pcap", PT_FORMAT_BY_NAME);
    make("all.pcapng", PT_FORMAT_BY_NAME);
    CHECK(size_of("all.pcap") == 24 + PACKETS * (16 + 60) && size_of("all.pcapng") > size_of("all.pcap"));

    pt_writer *writer = pt_writer_new("some", PT_FORMAT_PCAPNG, "lan0");
    CHECK(writer && copy(pt_source_file("all.pcap"), "udp dst port 53 or 55", writer) == 2);
    CHECK(pt_writer_flush(writer) == 0 && copy(pt_source_file("all.pcapng"), "dst portrange 56-100", writer) == 3);
    CHECK(pt_writer_free(writer) == 0);
    pt_source *some = pt_source_file("some");
    pt_packet packet;
    for (const char *digit = "35678"; *digit; digit++) {
        /* The first file does not say by which interface its packets went; the second does. */
        char name[5];
        int known = *digit >= '6';
        CHECK(pt_source_next(some, &packet) == 1 && packet.time % 10 == (uint64_t)(*digit - '0'));
        CHECK(packet.direction == (known ? PT_DIRECTION_OUT : PT_DIRECTION_UNKNOWN));
        CHECK(pt_source_interface(some, &packet, name, sizeof name) == 4 && !strcmp(name, known ? "eth8" : "lan0"));
    }
    CHECK(pt_source_next(some, &packet) == PT_E_END && pt_source_free(some) == 0);

    /* A pipe: the writer and the source have descriptors of their own. */
    int ends[2];
    CHECK(pipe(ends) == 0);
    pt_writer *to = pt_writer_fd(ends[1], 0, NULL);
    pt_writer *copies = pt_writer_new("piped.pcap", 0, NULL);
    CHECK(to && copies && close(ends[1]) == 0 && copy(pt_source_file("all.pcap"), "", to) == PACKETS);
    CHECK(pt_writer_free(to) == 0);
    pt_source *from = pt_source_fd(ends[0]);
    CHECK(from && close(ends[0]) == 0 && pt_source_progress(from, NULL, NULL) == 0);
    CHECK(copy(from, "", copies) == PACKETS && pt_writer_free(copies) == 0);
    CHECK(size_of("piped.pcap") == size_of("all.pcap"));

    char names[2];
    int64_t length = pt_interfaces(names, sizeof names);
    char *all = malloc((size_t)length + 1);
    CHECK(length >= 4 && all && pt_interfaces(all, (size_t)length + 1) == length && !strcmp(all + length - 4, "any\n"));
    free(all);
    bad("all.pcap");
    damaged("all.pcap");
    damaged("all.pcapng");
    puts("packets: fine");
    return 0;
}
