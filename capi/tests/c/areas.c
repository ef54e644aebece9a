/* A structure with pointers that two domains and the host follow, rights that change, memory that
 * the host shares already. */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

struct node { struct node *left, *right; long key; };
struct pool { struct node *root, *free, *end; };

static pt_shared *tree;
static long last = -1;
static int count;

/* In order. What an extension wrote is checked before it is followed; there is nothing to
 * convert. */
static void walk(struct node *node)
{
    if (!node) return;
    CHECK(pt_shared_at(tree, node, sizeof *node) == node);
    walk(node->left);
    CHECK(node->key > last);
    last = node->key;
    count++;
    walk(node->right);
}

static pt_domain *open_domain(const char *path, const char *name)
{
    pt_options *options = pt_options_new();
    CHECK(pt_options_name(options, name) == 0 && pt_options_deadline(options, 0) == 0);
    pt_image *image = pt_image_load(path);
    pt_domain *domain = pt_domain_new(image, options);
    CHECK(domain && pt_image_free(image) == 0 && pt_options_free(options) == 0);
    return domain;
}

int main(int argc, char **argv)
{
    (void)argc;
    pt_domain *writer = open_domain(argv[1], "writer"), *reader = open_domain(argv[1], "reader");
    tree = pt_shared_new_as("tree", 0, 16384);
    CHECK(tree && !strcmp(pt_shared_name(tree), "tree"));
    pt_offset at = pt_domain_expose(writer, tree, PT_READ_WRITE);
    CHECK(at && pt_domain_expose(reader, tree, PT_READ_ONLY) == at);
    struct pool *pool = pt_shared_address(tree);
    pool->free = (struct node *)(pool + 1);
    pool->end = pool->free + 100;
    int (*insert)(pt_offset, long) = PT_SYM(writer, int, insert, (pt_offset, long));
    int (*spoil)(pt_offset, long) = PT_SYM(reader, int, insert, (pt_offset, long));
    long (*sum)(pt_offset) = PT_SYM(reader, long, sum, (pt_offset)), expected = 0;
    for (long i = 0; i < 100; i++) {
        CHECK(insert(at, i * 37 % 101) == 1);
        expected += i * 37 % 101;
    }
    CHECK(insert(at, 7) == 0 && sum(at) == expected && !pt_fault_last());
    walk(pool->root);
    CHECK(count == 100);
    pt_offset (*root)(pt_offset) = PT_SYM(reader, pt_offset, root, (pt_offset));
    CHECK(pt_shared_at(tree, (void *)(uintptr_t)root(at), sizeof(struct node)) == pool->root);
    CHECK(!pt_shared_at(tree, &pool, 1) && pt_error_code() == PT_E_RANGE && !pt_shared_at(NULL, pool, 1));
    CHECK(!pt_shared_at(tree, pool, 16385) && pt_shared_at(tree, (char *)pool + 16384, 0));
    pt_fault_clear();

    /* The reader can do no more than read; who, what and where is said. */
    pool->end++;
    spoil(at, 1);
    const pt_fault *fault = pt_fault_last();
    CHECK(fault && fault->kind == PT_FAULT_READ_ONLY && (fault->has & PT_HAS_AREA) && fault->area_start == at);
    CHECK(!strcmp(fault->area, "tree") && !strcmp(fault->domain, "reader") && fault->page == 0 && fault->access == PT_READ_ONLY);
    CHECK(strstr(fault->message, "page 0 of area `tree`, domain `reader`") && strstr(pt_fault_report(), "insert"));
    CHECK(pt_domain_reset(reader) == 0 && sum(at) == expected);

    /* Rights by page, changed while it lives. */
    int (*load)(pt_offset) = PT_SYM(reader, int, load, (pt_offset));
    void (*store)(pt_offset, int) = PT_SYM(reader, void, store, (pt_offset, int));
    CHECK(pt_domain_protect(reader, tree, 8192, 4096, PT_READ_WRITE) == 0 && pt_domain_protect(reader, tree, 12288, 4096, PT_NO_ACCESS) == 0);
    CHECK(pt_domain_protection(reader, tree, 100) == PT_READ_ONLY && pt_domain_protection(reader, tree, 8192) == PT_READ_WRITE);
    CHECK(pt_domain_protection(reader, tree, 16383) == PT_NO_ACCESS && pt_domain_protection(reader, NULL, 0) == PT_E_HANDLE);
    pt_fault_clear();
    store(at + 8192, 5);
    CHECK(load(at + 8192) == 5 && !pt_fault_last());
    load(at + 12288);
    CHECK((fault = pt_fault_last()) && fault->kind == PT_FAULT_READ && fault->page == 3 && fault->access == PT_NO_ACCESS);
    CHECK(pt_domain_reset(reader) == 0);
    CHECK(pt_domain_protect(reader, tree, 1, 4096, PT_READ_ONLY) == PT_E_ARGUMENT && pt_domain_protect(reader, tree, 0, 5, 1) == PT_E_ARGUMENT);
    CHECK(pt_domain_protect(reader, tree, 0, 20480, PT_READ_ONLY) == PT_E_RANGE && pt_domain_protect(reader, tree, 8, SIZE_MAX, 1) == PT_E_RANGE);
    CHECK(pt_domain_protect(reader, tree, 0, 4096, 2) == PT_E_ARGUMENT && pt_domain_protect(NULL, tree, 0, 4096, 1) == PT_E_HANDLE);
    CHECK(pt_domain_withdraw(reader, tree) == 0 && pt_domain_protection(reader, tree, 0) == PT_NO_ACCESS);
    CHECK(load(at) == 0 && !strcmp(pt_fault_last()->area, "tree"));
    CHECK(pt_domain_reset(reader) == 0 && pt_domain_expose(reader, tree, PT_READ_ONLY) == at && sum(at) == expected);

    /* A chosen place; one that is taken; one that is none. */
    pt_shared *placed = pt_shared_new_as(NULL, 0x20000000, 4096);
    CHECK(placed && pt_domain_expose(reader, placed, PT_READ_ONLY) == 0x20000000);
    CHECK(!pt_shared_new_as(NULL, 0x20001000, 4096) && strstr(pt_error_message(), pt_shared_name(placed)));
    CHECK(!pt_shared_new_as(NULL, 0xfffff000, 4096) && pt_error_code() == PT_E_ARGUMENT);

    /* Memory that the host shares already, and memory that it does not. */
    int fd = memfd_create("host", 0);
    CHECK(fd >= 0 && ftruncate(fd, 8192) == 0);
    int *mine = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(mine != MAP_FAILED);
    mine[0] = 99;
    pt_shared *exposed = pt_shared_from_memory("mine", 0, mine, 8192);
    at = pt_domain_expose(reader, exposed, PT_READ_WRITE);
    CHECK(at && load(at) == 99);
    store(at + 4096, 98);
    CHECK(mine[1024] == 98 && munmap(mine, 8192) == 0 && load(at + 4096) == 98);
    static char private[8192] __attribute__((aligned(4096)));
    CHECK(!pt_shared_from_memory(NULL, 0, private, 8192) && pt_error_code() == PT_E_ARGUMENT);
    CHECK(strstr(pt_error_message(), "private") && strstr(pt_error_message(), "pt_shared_new"));
    CHECK(!pt_shared_from_memory(NULL, 0, NULL, 4096) && !pt_shared_from_memory(NULL, 0, private + 1, 4096));

    /* Somebody truncates the file. */
    CHECK(ftruncate(fd, 4096) == 0);
    int value = 0;
    pt_fault_clear();
    CHECK(load(at + 4096) == 0 && (fault = pt_fault_last()) && fault->kind == PT_FAULT_BUS && !strcmp(fault->area, "mine"));
    CHECK(pt_domain_reset(reader) == 0 && pt_shared_read(exposed, 4096, &value, 4) == PT_E_RANGE && strstr(pt_error_message(), "truncated"));
    CHECK(pt_domain_read(reader, at + 4096, &value, 4) == PT_E_RANGE && pt_shared_write(exposed, 4096, &value, 4) == PT_E_RANGE);
    CHECK(pt_shared_read(exposed, 0, &value, 4) == 0 && value == 99 && pt_shared_read(exposed, 8190, &value, 4) == PT_E_RANGE);

    /* The table. */
    static char text[1 << 16];
    int64_t length = pt_memory_table(text, sizeof text);
    CHECK(length > 200 && length == (int64_t)strlen(text) && pt_memory_table(NULL, 0) == length);
    CHECK(strstr(text, "area `tree`") && strstr(text, "writer at 0x") && strstr(text, "area `mine`"));
    CHECK(pt_memory_table(text, 10) == length && strlen(text) == 9);
    return 0;
}
