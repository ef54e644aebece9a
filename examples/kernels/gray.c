/* A colour picture to grey: bytes in, bytes out, integer weights. */

enum { WIDTH = 640, HEIGHT = 480, ROUNDS = 10 };

static unsigned char colour[WIDTH * HEIGHT * 3];
static unsigned char grey[WIDTH * HEIGHT];

static void convert(const unsigned char *from, unsigned char *to, unsigned long pixels)
{
    for (unsigned long i = 0; i < pixels; i++)
        to[i] = (unsigned char)((from[3 * i] * 77 + from[3 * i + 1] * 150 + from[3 * i + 2] * 29) >> 8);
}

unsigned long gray(void)
{
    for (unsigned i = 0; i < sizeof colour; i++)
        colour[i] = (unsigned char)(i * 37 + (i >> 9));
    unsigned long sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        colour[round] = (unsigned char)round;
        convert(colour, grey, sizeof grey);
        for (unsigned i = 0; i < sizeof grey; i += 997)
            sum = sum * 31 + grey[i];
    }
    return sum;
}
