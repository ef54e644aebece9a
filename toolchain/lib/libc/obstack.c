/* Stacks of objects: chunks of memory in a list, the newest first; the object that grows is the
 * last in the newest. */
#define _GNU_SOURCE
#include <obstack.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void no_memory(void)
{
    fputs("memory exhausted\n", stderr);
    exit(1);
}
void (*obstack_alloc_failed_handler)(void) = no_memory;

static char *aligned(const struct obstack *h, char *at)
{
    return (char *)(((uintptr_t)at + h->alignment_mask) & ~(uintptr_t)h->alignment_mask);
}
static struct _obstack_chunk *taken(struct obstack *h, size_t n)
{
    struct _obstack_chunk *chunk = h->chunkfun(n);
    if (!chunk) {
        obstack_alloc_failed_handler();
        abort();
    }
    chunk->limit = (char *)chunk + n;
    chunk->prev = h->chunk;
    return chunk;
}
int _obstack_begin(struct obstack *h, size_t n, size_t alignment, void *(*take)(size_t), void (*give)(void *))
{
    *h = (struct obstack){ n ? n : 4064, 0, 0, 0, 0, (alignment ? alignment : 16) - 1, take, give };
    h->chunk = taken(h, h->chunk_size);
    h->object_base = h->next_free = aligned(h, h->chunk->contents);
    h->chunk_limit = h->chunk->limit;
    return 1;
}
void _obstack_newchunk(struct obstack *h, size_t more)
{
    size_t have = obstack_object_size(h), n = have + more + (have >> 3) + h->alignment_mask + 100;
    struct _obstack_chunk *old = h->chunk;
    int alone = h->object_base == aligned(h, old->contents);
    h->chunk = taken(h, n > h->chunk_size ? n : h->chunk_size);
    char *to = aligned(h, h->chunk->contents);
    memcpy(to, h->object_base, have);
    if (alone && old->prev) {
        h->chunk->prev = old->prev;
        h->freefun(old);
    }
    h->object_base = to;
    h->next_free = to + have;
    h->chunk_limit = h->chunk->limit;
}
void *_obstack_finish(struct obstack *h)
{
    char *object = h->object_base, *next = aligned(h, h->next_free);
    h->next_free = h->object_base = next < h->chunk_limit ? next : h->chunk_limit;
    return object;
}
void _obstack_free(struct obstack *h, void *object)
{
    while (h->chunk && ((char *)object <= (char *)h->chunk || (char *)object > h->chunk->limit)) {
        struct _obstack_chunk *before = h->chunk->prev;
        h->freefun(h->chunk);
        h->chunk = before;
    }
    if (h->chunk) {
        h->object_base = h->next_free = object;
        h->chunk_limit = h->chunk->limit;
    } else if (object) {
        abort();
    }
}
size_t _obstack_memory_used(struct obstack *h)
{
    size_t n = 0;
    for (struct _obstack_chunk *chunk = h->chunk; chunk; chunk = chunk->prev)
        n += (size_t)(chunk->limit - (char *)chunk);
    return n;
}
int obstack_vprintf(struct obstack *h, const char *form, va_list values)
{
    char *text;
    int n = vasprintf(&text, form, values);
    if (n >= 0) {
        obstack_grow(h, text, (size_t)n);
        free(text);
    }
    return n;
}
int obstack_printf(struct obstack *h, const char *form, ...)
{
    va_list values;
    va_start(values, form);
    int n = obstack_vprintf(h, form, values);
    va_end(values);
    return n;
}
