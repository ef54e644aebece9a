/* A handler of packets by their port: 7 is echoed, 9 faults after an answer, 11 goes to the area, 13 is taken, others are left. */
#include <postern/packet.h>

/* Packets to odd ports. */
int filter(const unsigned char *packet, unsigned length, unsigned wire_length)
{
    return length >= 38 && wire_length >= length && packet[37] & 1;
}

int handle(const unsigned char *packet, unsigned length, unsigned wire_length)
{
    static unsigned char answer[64];
    unsigned size = 0;
    if (length < 38 || length > sizeof answer || wire_length < length)
        return 0;
    for (unsigned i = 0; i < length; i++)
        answer[i] = packet[i];
    switch (packet[36] << 8 | packet[37]) {
    case 7:
        answer[34] = packet[36];
        answer[35] = packet[37];
        answer[36] = packet[34];
        answer[37] = packet[35];
        packet_send(answer, length);
        return packet_send(answer, 38) == 0;
    case 9:
        packet_send(answer, length);
        *(volatile unsigned char *)packet = 1;
        return 1;
    case 11: {
        unsigned char *area = packet_area(&size);
        for (unsigned i = 0; area && i < length && i < size; i++)
            area[i] = packet[i];
        return area != 0;
    }
    case 13:
        return 1;
    }
    return 0;
}
