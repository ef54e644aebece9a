/* Live capture on a pair of interfaces, `va` and `vb`: what is sent by one comes in by the other,
 * is judged in the ring, handled and answered. */
#include "check.h"
#include "packets.h"
#include <net/if.h>
#include <unistd.h>

/* The next packet that a filter accepts; there has to be one. */
static void accepted(pt_source *source, pt_filter *filter, pt_packet *packet)
{
    for (int idle = 0; idle < 600;) {
        int got = pt_source_next(source, packet);
        CHECK(got >= 0);
        idle += got == 0;
        if (got && pt_filter_run_at(filter, packet->at, packet->length, packet->wire_length) > 0)
            return;
    }
    CHECK(!"a packet came");
}

int main(int argc, char **argv)
{
    CHECK(argc == 3 && chdir(argv[1]) == 0);
    char names[400], name[20];
    CHECK(pt_interfaces(names, sizeof names) > 0 && strstr(names, "va\n") && strstr(names, "any\n"));
    CHECK(!pt_source_live("nothere", 0, 0, 0) && pt_error_code() == PT_E_SYSTEM && strstr(pt_error_message(), "No such device"));

    pt_source *va = pt_source_live("va", 0, 0, 0);
    pt_source *vb = pt_source_live("vb", PT_LIVE_NOT_PROMISCUOUS, 0, 8 << 20);
    pt_source *any = pt_source_live("any", 0, 100, 0);
    pt_source *in = pt_source_live("va", PT_LIVE_IN, 0, 8 << 20), *out = pt_source_live("va", PT_LIVE_OUT, 0, 8 << 20);
    CHECK(va && vb && any && in && out);
    CHECK(!pt_source_live("va", 16, 0, 0) && pt_error_code() == PT_E_ARGUMENT);
    pt_filter *requests = pt_filter_new("udp dst port 7", NULL), *replies = pt_filter_new("udp src port 7", NULL);
    pt_image *image = pt_image_load(argv[2]);
    pt_handler *handler = pt_handler_new(image, "echo", NULL);
    CHECK(pt_source_watch(vb, pt_filter_domain(requests)) == 0 && pt_source_watch(vb, pt_handler_domain(handler)) == 0);
    CHECK(pt_source_watch(va, pt_filter_domain(replies)) == 0);
    CHECK(pt_source_watch(any, pt_filter_domain(replies)) == 0);

    unsigned char request[60], reply[60];
    pt_packet packet;
    size_t length;
    for (int i = 0; i < 20; i++) {
        udp(request, 7);
        request[0] = 0xff; /* for all, so that an interface that is not promiscuous takes it */
        request[50] = (unsigned char)i;
        CHECK(pt_source_send(va, NULL, request, sizeof request) == 0);
        accepted(vb, requests, &packet);
        CHECK(packet.interface == if_nametoindex("vb") && packet.direction != PT_DIRECTION_OUT);
        CHECK(packet.time > 1500000000000000000u && packet.length == 60 && packet.wire_length == 60);
        CHECK(pt_handler_run(handler, &packet) == 1);
        const void *frame = pt_handler_answer(handler, 0, &length);
        CHECK(frame && pt_source_send(vb, i % 2 ? &packet : NULL, frame, length) == 0);
        accepted(va, replies, &packet);
        CHECK(pt_source_read(va, &packet, reply, sizeof reply) == 60 && reply[50] == i && reply[35] == 7);
        CHECK(pt_source_interface(va, &packet, name, sizeof name) == 2 && !strcmp(name, "va"));
    }
    /* Requests went out by `va`, and replies came in. */
    CHECK(pt_source_watch(out, pt_filter_domain(requests)) == 0 && pt_source_watch(in, pt_filter_domain(replies)) == 0);
    accepted(out, requests, &packet);
    while (pt_source_next(out, &packet) == 1)
        CHECK(packet.direction == PT_DIRECTION_OUT);
    accepted(in, replies, &packet);
    while (pt_source_next(in, &packet) == 1)
        CHECK(packet.direction != PT_DIRECTION_OUT);
    uint64_t received, dropped;
    CHECK(pt_source_counters(va, &received, &dropped) == 0 && received >= 20 && dropped == 0);
    CHECK(pt_source_progress(va, NULL, NULL) == 0);

    /* All interfaces: it has no own one to send by. */
    accepted(any, replies, &packet);
    CHECK(pt_source_send(any, NULL, request, sizeof request) == PT_E_SYSTEM);
    CHECK(pt_source_send(any, &packet, request, sizeof request) == 0);
    CHECK(pt_source_send(va, NULL, NULL, 60) == PT_E_ARGUMENT && pt_source_send(va, NULL, request, 0) == PT_E_SYSTEM);

    /* A demultiplexer answers by itself. */
    char word[300];
    const char *const words[] = { word };
    snprintf(word, sizeof word, "%s=udp dst port 7", argv[2]);
    pt_demux *demux = pt_demux_to(vb, words, 1, 0);
    CHECK(demux && pt_source_send(va, NULL, request, sizeof request) == 0);
    pt_tally tally = { 0 };
    while (tally.answers == 0) {
        int got = pt_source_next(vb, &packet);
        CHECK(got >= 0 && (got ? pt_demux_packet(demux, &packet) : pt_demux_idle(demux)) == 0);
        CHECK(pt_demux_tally(demux, 0, &tally) == 1);
    }
    accepted(va, replies, &packet);
    CHECK(pt_demux_free(demux) == 0 && pt_handler_free(handler) == 0);
    CHECK(pt_source_free(va) == 0 && pt_source_free(vb) == 0 && pt_source_free(any) == 0);
    CHECK(pt_filter_free(requests) == 0 && pt_filter_free(replies) == 0 && pt_image_free(image) == 0);
    puts("live: fine");
    return 0;
}
