/* Takeuchi's function: calls with three arguments and little else. */

static int tak_of(int x, int y, int z)
{
    if (y >= x)
        return z;
    return tak_of(tak_of(x - 1, y, z), tak_of(y - 1, z, x), tak_of(z - 1, x, y));
}

unsigned long tak(void)
{
    unsigned long sum = 0;
    for (int i = 0; i < 30; i++)
        sum += (unsigned long)tak_of(18 + (i & 1), 12, 6);
    return sum;
}
