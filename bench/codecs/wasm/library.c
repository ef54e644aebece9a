/* What the codecs need of C's library, for a module without one: copying by WebAssembly's own instructions, and a heap that grows and is
 * given back as a whole. */
#include <stdlib.h>
#include <string.h>

extern unsigned char __heap_base[];
static unsigned char *top;

void begin_anew(void) { top = __heap_base; }

void *malloc(size_t size)
{
	if (!top)
		begin_anew();
	unsigned char *at = (unsigned char *)(((size_t)top + 15) & ~(size_t)15);
	size_t end = (size_t)at + size, have = __builtin_wasm_memory_size(0) << 16;
	if (end > have && __builtin_wasm_memory_grow(0, (end - have + 65535) >> 16) == (size_t)-1)
		return 0;
	top = at + size;
	return at;
}

void *calloc(size_t count, size_t size)
{
	void *at = malloc(count * size);
	return at ? memset(at, 0, count * size) : at;
}

void free(void *at) { (void)at; }
void abort(void) { __builtin_trap(); }
void *memcpy(void *to, const void *from, size_t size) { return __builtin_memcpy(to, from, size); }
void *memmove(void *to, const void *from, size_t size) { return __builtin_memmove(to, from, size); }
void *memset(void *to, int byte, size_t size) { return __builtin_memset(to, byte, size); }

int memcmp(const void *left, const void *right, size_t size)
{
	const unsigned char *a = left, *b = right;
	for (; size; a++, b++, size--)
		if (*a != *b)
			return *a < *b ? -1 : 1;
	return 0;
}

size_t strlen(const char *text)
{
	size_t length = 0;
	while (text[length])
		length++;
	return length;
}
