/* Quicksort of records through a comparison function that it is given: indirect calls and byte moves. */

enum { RECORDS = 30000 };

struct record {
    unsigned key;
    unsigned payload;
};

typedef int compare_fn(const void *, const void *);

static int by_key(const void *a, const void *b)
{
    unsigned x = ((const struct record *)a)->key, y = ((const struct record *)b)->key;
    return (x > y) - (x < y);
}

static void swap(char *a, char *b, unsigned long size)
{
    for (unsigned long i = 0; i < size; i += sizeof(unsigned)) {
        unsigned t = *(unsigned *)(a + i);
        *(unsigned *)(a + i) = *(unsigned *)(b + i);
        *(unsigned *)(b + i) = t;
    }
}

static void sort(char *base, unsigned long count, unsigned long size, compare_fn *compare)
{
    while (count > 1) {
        swap(base, base + count / 2 * size, size);
        unsigned long low = 0;
        for (unsigned long i = 1; i < count; i++)
            if (compare(base + i * size, base) < 0)
                swap(base + ++low * size, base + i * size, size);
        swap(base, base + low * size, size);
        if (low < count - low - 1) {
            sort(base, low, size, compare);
            base += (low + 1) * size;
            count -= low + 1;
        } else {
            sort(base + (low + 1) * size, count - low - 1, size, compare);
            count = low;
        }
    }
}

static struct record records[RECORDS];

/* Not static and not const, so that the compiler cannot know what is called. */
compare_fn *qsort_compare = by_key;

unsigned long qsort_records(void)
{
    unsigned random = 1;
    for (unsigned i = 0; i < RECORDS; i++) {
        random = random * 1664525u + 1013904223u;
        records[i].key = random >> 4;
        records[i].payload = i;
    }
    sort((char *)records, RECORDS, sizeof records[0], qsort_compare);
    unsigned long sum = 0;
    for (unsigned i = 0; i < RECORDS; i++)
        sum = sum * 31 + records[i].key + records[i].payload;
    return sum;
}
