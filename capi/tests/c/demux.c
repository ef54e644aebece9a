/* One capture for a file, a handler, a socket and the rest, by rules and by words; and rules that
 * are refused. */
#include "check.h"
#include "packets.h"
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static pt_source *source;
static int faulted;

/* The source may be used from here: nothing is locked. */
static void on_fault(const pt_fault *fault, void *user)
{
    uint64_t received;
    CHECK(fault->kind == PT_FAULT_READ_ONLY && !strcmp(fault->domain, "echo") && user == &faulted);
    CHECK(pt_source_counters(source, &received, NULL) == 0 && received > 0);
    faulted++;
}

static void write_file(const char *path, const char *format, const char *image, const char *more)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fprintf(file, format, image, more) > 0 && fclose(file) == 0);
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

static void spread(pt_demux *demux)
{
    pt_packet packet;
    int got;
    while ((got = pt_source_next(source, &packet)) >= 0)
        CHECK((got ? pt_demux_packet(demux, &packet) : pt_demux_idle(demux)) == 0);
    CHECK(got == PT_E_END && pt_demux_idle(demux) == 0);
}

static void count(pt_demux *demux, size_t index, const char *name, uint64_t packets, uint64_t faults)
{
    pt_tally tally;
    CHECK(pt_demux_tally(demux, index, &tally) == 1);
    if (strcmp(tally.name, name) || tally.packets != packets || tally.bytes != 60 * packets || tally.faults != faults) {
        fprintf(stderr, "%s: %d packets, %d faults\n", tally.name, (int)tally.packets, (int)tally.faults);
        exit(1);
    }
    CHECK(tally.dropped == 0 && tally.answers == 0 && tally.reserved[0] == 0);
}

/* Rules that cannot be: what is said, and as which code. */
static void refused(const char *consumer, int code, const char *message)
{
    write_file("bad.toml", "[[consumer]]\nname = \"%s\"\nfile = \"x.pcap\"\n%s\n", "some", consumer);
    CHECK(!pt_demux_new(source, "bad.toml", 0));
    if (pt_error_code() != code || !strstr(pt_error_message(), message)) {
        fprintf(stderr, "%d %s instead of %d %s\n", pt_error_code(), pt_error_message(), code, message);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 3 && chdir(argv[1]) == 0);
    const int ports[] = { 53, 7, 80, 9, 53, 443, 13 };
    capture("all.pcap", ports, 7);
    int fd = listen_at("web.sock");
    write_file("rules.toml",
               "[[consumer]]\nname = \"dns\"\nfilter = \"udp port 53\"\nfile = \"dns.pcapng\"\npriority = 9\n\n"
               "[[consumer]]\nname = \"echo\"\nfilter = \"udp dst port 7 or 9\"\nhandler = \"%s\"\npriority = 5\n\n"
               "[[consumer]]\nname = \"web\"\nfilter = \"dst port 80 or 443\"\nsocket = \"web.sock\"\npriority = 5\n\n"
               "[[consumer]]\nname = \"rest\"\nfilter = \"not dst port 13\"\nfile = \"rest.pcap\"\n%s",
               argv[2], "");
    source = pt_source_file("all.pcap");
    pt_demux *demux = pt_demux_new(source, "rules.toml", 0);
    CHECK(demux && pt_demux_on_fault(demux, on_fault, &faulted) == 0);
    spread(demux);
    CHECK(pt_demux_finish(demux) == 0 && faulted == 1);
    count(demux, 0, "dns", 2, 0);
    count(demux, 1, "echo", 2, 1);
    count(demux, 2, "web", 2, 0);
    /* What the handler was killed over. */
    count(demux, 3, "rest", 1, 0);
    pt_tally tally;
    uint64_t unclaimed = 99;
    CHECK(pt_demux_tally(demux, 4, &tally) == 0 && pt_demux_tally(demux, 0, NULL) == PT_E_ARGUMENT);
    CHECK(pt_demux_unclaimed(demux, &unclaimed) == 0 && unclaimed == 1);
    char text[64];
    CHECK(pt_demux_show(demux, text, sizeof text) > 64 && strlen(text) == 63);
    for (int i = 0; i < 2; i++) {
        unsigned char message[100];
        CHECK(recv(fd, message, sizeof message, MSG_DONTWAIT) == 76 && message[8] == 60);
        CHECK((message[16 + 36] << 8 | message[16 + 37]) == (i ? 443 : 80));
    }
    CHECK(recv(fd, text, sizeof text, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    /* The demultiplexer keeps the source. */
    pt_packet packet = { .at = 4, .length = 60, .wire_length = 60 };
    CHECK(pt_source_free(source) == 0 && pt_demux_packet(demux, &packet) == PT_E_RANGE && pt_demux_packet(demux, NULL) == PT_E_ARGUMENT);
    CHECK(pt_demux_free(demux) == 0 && pt_demux_free(demux) == PT_E_HANDLE && pt_demux_packet(demux, &packet) == PT_E_HANDLE);
    pt_source *written = pt_source_file("dns.pcapng");
    CHECK(pt_source_next(written, &packet) == 1 && pt_source_next(written, &packet) == 1);
    CHECK(packet.wire_length == 60 && pt_source_next(written, &packet) == PT_E_END && pt_source_free(written) == 0);

    /* By words: everybody gets what they want. What is not written yet is by pt_demux_free. */
    const char *const words[] = { "high.pcap=dst portrange 50-1000", "dns.pcap=port 53" };
    CHECK((source = pt_source_file("all.pcap")) && (demux = pt_demux_to(source, words, 2, PT_DEMUX_ALL)));
    spread(demux);
    count(demux, 0, "high.pcap", 4, 0);
    count(demux, 1, "dns.pcap", 2, 0);
    CHECK(pt_demux_free(demux) == 0);
    CHECK((written = pt_source_file("high.pcap")) && pt_source_next(written, &packet) == 1 && pt_source_free(written) == 0);

    refused("[[consumer]]\nname = \"bad\"\nfile = \"y.pcap\"\nfilter = \"tpc\"", PT_E_SOURCE, "did you mean `tcp`?");
    refused("color = 1", PT_E_SOURCE, "unknown field `color`");
    refused("queue = 0", PT_E_ARGUMENT, "at least 1");
    refused("owner = \"a\"\n[[consumer]]\nname = \"bad\"\nfile = \"y.pcap\"\nfilter = \"udp\"\npriority = 1", PT_E_REFUSED, "`some`");
    refused("[[consumer]]\nname = \"bad\"\nhandler = \"echo.c\"", PT_E_ARGUMENT, "`postern cc -O2 echo.c -o NAME.px`");
    refused("[[consumer]]\nname = \"bad\"\nhandler = \"nothing.px\"", PT_E_FILE, "nothing.px");
    refused("[[consumer]]\nname = \"bad\"\nhandler = \"all.pcap\"", PT_E_IMAGE, "all.pcap");
    refused("[[consumer]]\nname = \"bad\"\nfile = \"/nothing/here\"", PT_E_FILE, "consumer `bad`");
    CHECK(!pt_demux_new(source, "nothing.toml", 0) && pt_error_code() == PT_E_FILE);
    CHECK(!pt_demux_new(source, NULL, 0) && pt_error_code() == PT_E_ARGUMENT);
    CHECK(!pt_demux_new(NULL, "rules.toml", 0) && pt_error_code() == PT_E_HANDLE);
    CHECK(!pt_demux_new(source, "rules.toml", 2) && pt_error_code() == PT_E_ARGUMENT);
    CHECK(!pt_demux_to(source, NULL, 1, 0) && pt_error_code() == PT_E_ARGUMENT);
    CHECK(!pt_demux_to(source, words, 0, 0) && pt_error_code() == PT_E_ARGUMENT);
    /* A file that cannot be written is an error at the end, at the latest. */
    const char *const full = "/dev/full=";
    CHECK((demux = pt_demux_to(source, &full, 1, 0)));
    CHECK(pt_demux_free(demux) == PT_E_FILE && strstr(pt_error_message(), "/dev/full"));
    CHECK(pt_source_free(source) == 0);
    puts("demux: fine");
    return 0;
}
