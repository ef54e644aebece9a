/* newlib's own names of the malloc family, whose functions are in our library, and what else there
 * is of it. */
#include <errno.h>
#include <reent.h>
#include <stdlib.h>
#include <malloc.h>
#include <string.h>

void *_malloc_r(struct _reent *reent, size_t n)
{
    void *block = malloc(n);
    if (!block)
        reent->_errno = ENOMEM;
    return block;
}
void *_calloc_r(struct _reent *reent, size_t count, size_t each)
{
    void *block = calloc(count, each);
    if (!block)
        reent->_errno = ENOMEM;
    return block;
}
void *_realloc_r(struct _reent *reent, void *block, size_t n)
{
    void *moved = realloc(block, n);
    if (!moved && n)
        reent->_errno = ENOMEM;
    return moved;
}
void _free_r(struct _reent *reent, void *block) { (void)reent, free(block); }
void cfree(void *block) { free(block); }

void *_memalign_r(struct _reent *reent, size_t alignment, size_t n)
{
    void *block = memalign(alignment, n);
    if (!block)
        reent->_errno = ENOMEM;
    return block;
}
void *valloc(size_t n) { return memalign(4096, n); }
void *pvalloc(size_t n) { return memalign(4096, (n + 4095) & ~(size_t)4095); }
void *reallocarray(void *block, size_t count, size_t each)
{
    size_t n;
    if (__builtin_mul_overflow(count, each, &n)) {
        errno = ENOMEM;
        return 0;
    }
    return realloc(block, n);
}
