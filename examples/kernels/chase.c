/* A linked list in random order, half a megabyte: loads of which each needs the one before. */

enum { NODES = 1 << 14, ROUNDS = 35 };

struct node {
    struct node *next;
    unsigned long value;
    unsigned long rest[2];
};

static struct node nodes[NODES];
static unsigned order[NODES];

unsigned long chase(void)
{
    unsigned random = 12345;
    for (unsigned i = 0; i < NODES; i++)
        order[i] = i;
    for (unsigned i = NODES - 1; i > 0; i--) {
        random = random * 1664525u + 1013904223u;
        unsigned j = (random >> 8) % (i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (unsigned i = 0; i < NODES; i++) {
        nodes[order[i]].next = &nodes[order[(i + 1) % NODES]];
        nodes[order[i]].value = i ^ random;
    }
    unsigned long sum = 0;
    const struct node *at = &nodes[0];
    for (unsigned i = 0; i < ROUNDS * NODES; i++) {
        sum = sum * 3 + at->value;
        at = at->next;
    }
    return sum;
}
