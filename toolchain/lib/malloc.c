/* malloc and its family, inside the heap that the info page names.
 *
 * Chunks with boundary tags in segregated free lists. A chunk is a multiple of 16 bytes; its head
 * is 8 bytes: the size of the chunk before it (if that one is free) and its own size with two
 * flags. So what the caller gets is 16-aligned. Small chunks that are freed first go to a short
 * quick list of their size, still marked as used, so that the usual free and malloc of one size
 * costs nothing more. Each thread has its own quick lists, in its thread-local variables, and needs
 * no lock for them: a used chunk's head is read there, never written, since the flag of the chunk
 * before it may be changed by another thread at that moment. When memory runs out, a thread frees
 * its quick chunks in earnest. Above `top` lies memory that was never carved; a free chunk never
 * borders on it, nor on another free chunk. Above `fresh` nothing was ever written, so that it is
 * still zero. All offsets have 32 bits. One lock for all of this.
 *
 * A pointer that cannot be from here ends the call with a trap in the function that got it. */
#include <stddef.h>
#include <stdint.h>

#define PX __attribute__((weak, visibility("hidden")))
#define EXPORT __attribute__((weak, visibility("default"), used))

#define HEAP_START (*(const volatile uint32_t *)0x10010)
#define HEAP_END (*(const volatile uint32_t *)0x10014)

void *memset(void *, int, size_t);
void *memcpy(void *restrict, const void *restrict, size_t);

/* Where there is a C library; and where that has threads, locks whose waiters sleep. */
extern int *__errno(void) __attribute__((weak));
void __postern_lock_take(unsigned *word) __attribute__((weak));
void __postern_lock_give(unsigned *word) __attribute__((weak));

/* Nothing is left, or never was as much. */
static __attribute__((noinline, cold)) void *none(void)
{
    if (__errno)
        *__errno() = 12; /* ENOMEM */
    return 0;
}

typedef uint32_t at; /* the offset of a chunk's head */

struct head {
    uint32_t before; /* size of the chunk before, if that is free */
    uint32_t size;   /* of this chunk, or-ed with the flags */
    at next, last;   /* of the free list, in free chunks only; in quick chunks the next one and a mark */
};
enum { USED = 1, BEFORE_USED = 2, FLAGS = 15, QUICK_MOST = 16, QUICK_MARK = 0x51c2a63d, HEAD = 8, GRAIN = 16, EXACT = 32, BINS = EXACT + 4 * 23 };

static struct {
    unsigned lock;
    at bottom, top, fresh;
    uint64_t filled[2];
    at bin[BINS];
} heap;

static _Thread_local struct {
    at first[EXACT];
    unsigned char count[EXACT];
} quick;

static inline struct head *chunk(at a) { return (struct head *)(uintptr_t)a; }
static inline uint32_t size_of(at a) { return chunk(a)->size & ~(uint32_t)FLAGS; }

static void enter(void)
{
    if (__postern_lock_take)
        __postern_lock_take(&heap.lock);
    else
        while (__atomic_exchange_n(&heap.lock, 1, __ATOMIC_ACQUIRE))
            while (__atomic_load_n(&heap.lock, __ATOMIC_RELAXED))
                __builtin_ia32_pause();
    if (!heap.top) {
        /* Heads lie 8 below a multiple of 16. */
        heap.bottom = heap.top = ((HEAP_START + HEAD + GRAIN - 1) & ~(uint32_t)(GRAIN - 1)) - HEAD + GRAIN;
        heap.fresh = heap.top;
    }
}

static inline void leave(void)
{
    if (__postern_lock_give)
        __postern_lock_give(&heap.lock);
    else
        __atomic_store_n(&heap.lock, 0, __ATOMIC_RELEASE);
}

/* Exact below 512 bytes, then four to each power of two. */
static inline unsigned bin_of(uint32_t size)
{
    if (size < EXACT * GRAIN)
        return size / GRAIN;
    unsigned log2 = 31 - (unsigned)__builtin_clz(size);
    return EXACT + (log2 - 9) * 4 + (size >> (log2 - 2) & 3);
}

static void insert(at a)
{
    unsigned b = bin_of(size_of(a));
    at first = heap.bin[b];
    chunk(a)->next = first;
    chunk(a)->last = 0;
    if (first)
        chunk(first)->last = a;
    heap.bin[b] = a;
    heap.filled[b / 64] |= (uint64_t)1 << b % 64;
}

static void take_out(at a)
{
    struct head *h = chunk(a);
    unsigned b = bin_of(size_of(a));
    if (h->next)
        chunk(h->next)->last = h->last;
    if (h->last)
        chunk(h->last)->next = h->next;
    else if (!(heap.bin[b] = h->next))
        heap.filled[b / 64] &= ~((uint64_t)1 << b % 64);
}

/* Makes [a, a + size) free: joined with its neighbours, or given back to the top. The chunk before
 * it may be free. */
static void release(at a, uint32_t size)
{
    uint32_t before_used = chunk(a)->size & BEFORE_USED;
    if (!before_used) {
        uint32_t more = chunk(a)->before;
        a -= more;
        size += more;
        take_out(a);
        before_used = chunk(a)->size & BEFORE_USED;
    }
    at next = a + size;
    if (next == heap.top) {
        heap.top = a;
        return;
    }
    if (!(chunk(next)->size & USED)) {
        uint32_t more = size_of(next);
        take_out(next);
        size += more;
        next += more;
    }
    chunk(a)->size = size | before_used;
    chunk(next)->before = size;
    chunk(next)->size &= ~(uint32_t)BEFORE_USED;
    insert(a);
}

/* Marks a chunk of `have` bytes as used for `size` of them and frees the rest. */
static void use(at a, uint32_t have, uint32_t size)
{
    uint32_t before_used = chunk(a)->size & BEFORE_USED;
    if (have > size) {
        chunk(a)->size = size | USED | before_used;
        chunk(a + size)->size = (have - size) | USED | BEFORE_USED;
        release(a + size, have - size);
    } else {
        chunk(a)->size = have | USED | before_used;
        if (a + have != heap.top)
            chunk(a + have)->size |= BEFORE_USED;
    }
}

/* Frees the chunks of this thread's quick lists. Whether there were any. */
static int release_quick(void)
{
    int any = 0;
    for (unsigned b = 0; b < EXACT; b++) {
        at a;
        while ((a = quick.first[b])) {
            quick.first[b] = chunk(a)->next;
            release(a, size_of(a));
            any = 1;
        }
        quick.count[b] = 0;
    }
    return any;
}

/* For a thread that ends: nobody else would find what is in its quick lists. */
PX void __postern_malloc_end_thread(void)
{
    enter();
    release_quick();
    leave();
}

/* A used chunk of `size` bytes from this thread's quick lists, or 0. */
static inline at find_quick(uint32_t size)
{
    if (size >= EXACT * GRAIN)
        return 0;
    unsigned b = size / GRAIN;
    at a = quick.first[b];
    if (a) {
        quick.first[b] = chunk(a)->next;
        quick.count[b]--;
        chunk(a)->last = 0;
    }
    return a;
}

/* A used chunk of `size` bytes, or 0. */
static at find(uint32_t size)
{
    unsigned b = bin_of(size);
    for (at a = heap.bin[b]; a; a = chunk(a)->next)
        if (size_of(a) >= size) {
            take_out(a);
            use(a, size_of(a), size);
            return a;
        }
    b++;
    for (unsigned word = b / 64; word < 2; word++, b = word * 64) {
        uint64_t filled = heap.filled[word] & ~(uint64_t)0 << b % 64;
        if (filled) {
            at a = heap.bin[word * 64 + (unsigned)__builtin_ctzll(filled)];
            take_out(a);
            use(a, size_of(a), size);
            return a;
        }
    }
    at a = heap.top;
    if ((uint64_t)a + size > HEAP_END)
        return release_quick() ? find(size) : 0;
    heap.top = a + size;
    chunk(a)->size = size | USED | BEFORE_USED;
    return a;
}

/* The chunk's size for a request; 0 if it is too large. */
static inline uint32_t rounded(size_t n)
{
    if (n > 0xffffff00u)
        return 0;
    return n <= GRAIN - HEAD ? GRAIN : ((uint32_t)n + HEAD + GRAIN - 1) & ~(uint32_t)(GRAIN - 1);
}

static inline void touched(at end)
{
    if (end > heap.fresh)
        heap.fresh = end;
}

/* Traps if the chunk, which has the mark, is in the quick list. */
static __attribute__((noinline, cold)) void not_yet_freed(at a, unsigned b)
{
    for (at q = quick.first[b]; q; q = chunk(q)->next)
        if (q == a)
            __builtin_trap();
}

/* The chunk of a pointer that the caller says is from here. */
static at checked(void *pointer)
{
    at a = (at)(uintptr_t)pointer - HEAD;
    if ((a + HEAD) % GRAIN || a < heap.bottom || a >= heap.top || !(chunk(a)->size & USED) || size_of(a) < GRAIN
        || size_of(a) > heap.top - a)
        __builtin_trap();
    if (chunk(a)->last == QUICK_MARK && size_of(a) < EXACT * GRAIN)
        not_yet_freed(a, size_of(a) / GRAIN);
    return a;
}

EXPORT void *malloc(size_t n)
{
    uint32_t size = rounded(n);
    if (!size)
        return none();
    at a = find_quick(size);
    if (!a) {
        enter();
        if ((a = find(size)))
            touched(a + size_of(a));
        leave();
    }
    return a ? (void *)(uintptr_t)(a + HEAD) : none();
}

/* Whether the used chunk could be put into a quick list. */
static inline int put_quick(at a)
{
    uint32_t size = size_of(a);
    unsigned b = size / GRAIN;
    if (size >= EXACT * GRAIN)
        return 0;
    if (quick.count[b] >= QUICK_MOST)
        return 0;
    chunk(a)->next = quick.first[b];
    chunk(a)->last = QUICK_MARK;
    quick.first[b] = a;
    quick.count[b]++;
    return 1;
}

EXPORT void free(void *pointer)
{
    if (!(uint32_t)(uintptr_t)pointer)
        return;
    at a = checked(pointer);
    if (!put_quick(a)) {
        enter();
        release(a, size_of(a));
        leave();
    }
}

EXPORT void *calloc(size_t count, size_t each)
{
    size_t n;
    uint32_t size;
    if (__builtin_mul_overflow(count, each, &n) || !(size = rounded(n)))
        return none();
    at a = find_quick(size), clear_to = a + size;
    if (!a) {
        enter();
        if ((a = find(size))) {
            at end = a + size_of(a);
            clear_to = end < heap.fresh ? end : heap.fresh;
            touched(end);
        }
        leave();
    }
    if (!a)
        return none();
    void *pointer = (void *)(uintptr_t)(a + HEAD);
    if (clear_to > a + HEAD)
        memset(pointer, 0, clear_to - (a + HEAD));
    return pointer;
}

EXPORT void *realloc(void *pointer, size_t n)
{
    if (!(uint32_t)(uintptr_t)pointer)
        return malloc(n);
    uint32_t size = rounded(n);
    if (!size)
        return none();
    at a = checked(pointer);
    uint32_t have = size_of(a);
    if (size == have)
        return pointer;
    enter();
    at next = a + have;
    if (size > have && next == heap.top && (uint64_t)a + size <= HEAP_END) {
        heap.top = a + size;
        chunk(a)->size += size - have;
        have = size;
    } else if (size > have && next != heap.top && !(chunk(next)->size & USED) && have + size_of(next) >= size) {
        take_out(next);
        have += size_of(next);
        use(a, have, size);
        have = size;
    } else if (size < have) {
        use(a, have, size);
        have = size;
    }
    if (have >= size) {
        touched(a + have);
        leave();
        return pointer;
    }
    leave();
    void *moved = malloc(n);
    if (moved) {
        memcpy(moved, pointer, have - HEAD);
        free(pointer);
    }
    return moved;
}

PX void *aligned_alloc(size_t alignment, size_t n)
{
    if (alignment <= GRAIN)
        return malloc(n);
    uint32_t size = rounded(n);
    if (!size || alignment > 0x80000000u || (alignment & (alignment - 1)) || (uint64_t)size + alignment > 0xffffff00u)
        return 0;
    enter();
    at a = find(size + (uint32_t)alignment);
    if (a) {
        touched(a + size_of(a));
        uint32_t have = size_of(a);
        at aligned = ((a + HEAD + (uint32_t)alignment - 1) & ~((uint32_t)alignment - 1)) - HEAD;
        uint32_t lead = aligned - a;
        if (lead) {
            chunk(aligned)->size = (have - lead) | USED | BEFORE_USED;
            chunk(a)->size = lead | USED | (chunk(a)->size & BEFORE_USED);
            release(a, lead);
        }
        a = aligned;
        use(a, have - lead, size);
    }
    leave();
    return a ? (void *)(uintptr_t)(a + HEAD) : none();
}

PX void *memalign(size_t alignment, size_t n) { return aligned_alloc(alignment, n); }

PX int posix_memalign(void **out, size_t alignment, size_t n)
{
    void *pointer = aligned_alloc(alignment, n);
    if (!pointer)
        return 12; /* ENOMEM */
    *out = pointer;
    return 0;
}

/* What a block has room for. */
PX size_t malloc_usable_size(void *pointer)
{
    if (!(uint32_t)(uintptr_t)pointer)
        return 0;
    enter();
    size_t size = size_of(checked(pointer)) - HEAD;
    leave();
    return size;
}
