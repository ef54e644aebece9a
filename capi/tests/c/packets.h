/* What the tests of packets share. */
#ifndef PACKETS_H
#define PACKETS_H
#include "check.h"
#include <postern-filter.h>

/* A datagram from port 1000 to `port`, of 60 bytes. */
__attribute__((unused)) static void udp(unsigned char *to, int port)
{
    memset(to, 0, 60);
    to[12] = 8;
    to[14] = 0x45;
    to[23] = 17;
    to[34] = 1000 >> 8;
    to[35] = 1000 & 255;
    to[36] = (unsigned char)(port >> 8);
    to[37] = (unsigned char)port;
}

/* A capture of packets to these ports. */
__attribute__((unused)) static void capture(const char *path, const int *ports, int count)
{
    pt_writer *writer = pt_writer_new(path, PT_FORMAT_BY_NAME, NULL);
    CHECK(writer);
    for (int i = 0; i < count; i++) {
        unsigned char bytes[60];
        udp(bytes, ports[i]);
        CHECK(pt_writer_packet(writer, (uint64_t)i, bytes, sizeof bytes, 60) == 0);
    }
    CHECK(pt_writer_free(writer) == 0);
}
#endif
