/* A checksum that any difference changes. */
static inline unsigned long mix(unsigned long sum, unsigned long value)
{
    sum ^= value + 0x9e3779b97f4a7c15ul + (sum << 6) + (sum >> 2);
    return sum * 0xff51afd7ed558ccdul;
}
static inline unsigned long mix_double(unsigned long sum, double value)
{
    union { double d; unsigned long u; } u = { value };
    return mix(sum, u.u);
}
#define NOINLINE __attribute__((noinline, noipa))
