/* CRC-32 (the one of Ethernet and zip) by a table, a byte at a time: a load in each step of a chain. */

enum { BYTES = 1 << 18, ROUNDS = 4 };

static unsigned table[256];
static unsigned char data[BYTES];

unsigned long crc(void)
{
    for (unsigned i = 0; i < 256; i++) {
        unsigned value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? value >> 1 ^ 0xedb88320u : value >> 1;
        table[i] = value;
    }
    unsigned random = 7;
    for (unsigned i = 0; i < BYTES; i++) {
        random = random * 1664525u + 1013904223u;
        data[i] = (unsigned char)(random >> 24);
    }
    unsigned value = 0xffffffffu;
    for (int round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < BYTES; i++)
            value = table[(value ^ data[i]) & 0xff] ^ value >> 8;
    return value ^ 0xffffffffu;
}
