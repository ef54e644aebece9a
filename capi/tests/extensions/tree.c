/* A search tree in shared memory, for areas.c, and for areas/structures.rs of the runtime's tests. */
struct node { struct node *left, *right; long key; };
struct pool { struct node *root, *free, *end; };

/* Every pointer that this stores is made of pool->free, which the host wrote: so it is a host pointer. */
int insert(struct pool *pool, long key)
{
    struct node **place = &pool->root;
    while (*place)
        place = key < (*place)->key ? &(*place)->left : &(*place)->right;
    if (pool->free == pool->end)
        return 0;
    struct node *node = pool->free++;
    node->key = key;
    node->left = node->right = 0;
    *place = node;
    return 1;
}

static long sum_below(const struct node *node)
{
    return node ? node->key + sum_below(node->left) + sum_below(node->right) : 0;
}

long sum(const struct pool *pool)
{
    return sum_below(pool->root);
}

/* A pointer of the extension's own, whose upper half is zero. */
struct node *root(struct pool *pool)
{
    return (struct node *)((unsigned long)pool->root & 0xffffffff);
}

int load(const int *place) { return *place; }
void store(int *place, int value) { *place = value; }
