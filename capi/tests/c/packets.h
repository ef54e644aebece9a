/* What the tests of packets share. */
#ifndef PACKETS_H
#define PACKETS_H
#include <postern-filter.h>
#include <string.h>

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
#endif
