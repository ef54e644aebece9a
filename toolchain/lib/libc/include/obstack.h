/* Stacks of objects that grow: memory in chunks, of which the last object may still become
 * longer. */
#ifndef _OBSTACK_H
#define _OBSTACK_H

#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

struct _obstack_chunk {
    char *limit;
    struct _obstack_chunk *prev;
    char contents[];
};
struct obstack {
    size_t chunk_size;
    struct _obstack_chunk *chunk;
    char *object_base, *next_free, *chunk_limit;
    size_t alignment_mask;
    void *(*chunkfun)(size_t);
    void (*freefun)(void *);
};

extern void (*obstack_alloc_failed_handler)(void);
int _obstack_begin(struct obstack *, size_t, size_t, void *(*)(size_t), void (*)(void *));
void _obstack_newchunk(struct obstack *, size_t);
void *_obstack_finish(struct obstack *);
void _obstack_free(struct obstack *, void *);
size_t _obstack_memory_used(struct obstack *);
int obstack_printf(struct obstack *, const char *, ...);
int obstack_vprintf(struct obstack *, const char *, va_list);

#define obstack_init(h) _obstack_begin((h), 0, 0, (void *(*)(size_t))obstack_chunk_alloc, (void (*)(void *))obstack_chunk_free)
#define obstack_begin(h, n) _obstack_begin((h), (n), 0, (void *(*)(size_t))obstack_chunk_alloc, (void (*)(void *))obstack_chunk_free)
#define obstack_specify_allocation(h, n, alignment, take, give) \
    _obstack_begin((h), (n), (alignment), (void *(*)(size_t))(take), (void (*)(void *))(give))
#define obstack_base(h) ((void *)(h)->object_base)
#define obstack_next_free(h) ((void *)(h)->next_free)
#define obstack_object_size(h) ((size_t)((h)->next_free - (h)->object_base))
#define obstack_room(h) ((size_t)((h)->chunk_limit - (h)->next_free))
#define obstack_chunk_size(h) ((h)->chunk_size)
#define obstack_alignment_mask(h) ((h)->alignment_mask)
#define obstack_memory_used(h) _obstack_memory_used(h)
#define obstack_free(h, object) _obstack_free((h), (object))
#define obstack_finish(h) _obstack_finish(h)

static __inline__ void obstack_make_room(struct obstack *__h, size_t __n)
{
    if (obstack_room(__h) < __n)
        _obstack_newchunk(__h, __n);
}
static __inline__ void obstack_blank_fast(struct obstack *__h, ptrdiff_t __n) { __h->next_free += __n; }
static __inline__ void obstack_1grow_fast(struct obstack *__h, char __c) { *__h->next_free++ = __c; }
static __inline__ void obstack_blank(struct obstack *__h, ptrdiff_t __n)
{
    if (__n > 0)
        obstack_make_room(__h, (size_t)__n);
    __h->next_free += __n;
}
static __inline__ void obstack_grow(struct obstack *__h, const void *__from, size_t __n)
{
    obstack_make_room(__h, __n);
    memcpy(__h->next_free, __from, __n);
    __h->next_free += __n;
}
static __inline__ void obstack_grow0(struct obstack *__h, const void *__from, size_t __n)
{
    obstack_make_room(__h, __n + 1);
    memcpy(__h->next_free, __from, __n);
    __h->next_free += __n;
    *__h->next_free++ = 0;
}
static __inline__ void obstack_1grow(struct obstack *__h, char __c)
{
    obstack_make_room(__h, 1);
    *__h->next_free++ = __c;
}
static __inline__ void obstack_ptr_grow(struct obstack *__h, const void *__p) { obstack_grow(__h, &__p, sizeof __p); }
static __inline__ void obstack_int_grow(struct obstack *__h, int __n) { obstack_grow(__h, &__n, sizeof __n); }
static __inline__ void *obstack_alloc(struct obstack *__h, size_t __n)
{
    obstack_blank(__h, (ptrdiff_t)__n);
    return _obstack_finish(__h);
}
static __inline__ void *obstack_copy(struct obstack *__h, const void *__from, size_t __n)
{
    obstack_grow(__h, __from, __n);
    return _obstack_finish(__h);
}
static __inline__ void *obstack_copy0(struct obstack *__h, const void *__from, size_t __n)
{
    obstack_grow0(__h, __from, __n);
    return _obstack_finish(__h);
}

__END_DECLS

#endif
