/* A module in C: counts the bytes of a text and reports the most frequent one. By clang, without any library:
 *
 *     clang --target=wasm32 -mbulk-memory -O2 -nostdlib -Wl,--no-entry -o histogram.wasm histogram.c
 */
#define EXPORT(name) __attribute__((export_name(#name))) name
#define IMPORT(name) __attribute__((import_module("env"), import_name(#name))) name

void IMPORT(report)(int byte, int times);

static unsigned char room[65536];
static int counts[256];

/* Where the host may write `size` bytes, as an address of the module; 0 if it is too much. */
unsigned char *EXPORT(buffer)(unsigned size)
{
    return size <= sizeof room ? room : 0;
}

/* Counts the bytes, reports the most frequent one and returns how many different ones there are. */
int EXPORT(count)(const unsigned char *text, unsigned size)
{
    int different = 0, most = 0;
    for (int i = 0; i < 256; i++)
        counts[i] = 0;
    for (unsigned i = 0; i < size; i++)
        different += !counts[text[i]]++;
    for (int i = 1; i < 256; i++)
        if (counts[i] > counts[most])
            most = i;
    report(most, counts[most]);
    return different;
}
