/* The vectors of the library: 16 bytes, which every x86-64 processor has, or 32 in the build for
 * extensions that ask for AVX2. (An extension cannot ask the processor, and code with AVX costs the
 * gates a few cycles.) */
#ifndef VECTOR_H
#define VECTOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __AVX2__
#include <immintrin.h>
typedef __m256i vector;
static inline vector load(const void *p) { return _mm256_loadu_si256(p); }
static inline void store(void *p, vector v) { _mm256_storeu_si256(p, v); }
static inline void store_aligned(void *p, vector v) { _mm256_store_si256(p, v); }
static inline vector filled(int c) { return _mm256_set1_epi8((char)c); }
static inline vector equal(vector a, vector b) { return _mm256_cmpeq_epi8(a, b); }
static inline vector both(vector a, vector b) { return _mm256_and_si256(a, b); }
static inline vector either(vector a, vector b) { return _mm256_or_si256(a, b); }
/* Zero where one of them is. */
static inline vector least(vector a, vector b) { return _mm256_min_epu8(a, b); }
/* A bit for each byte whose highest is set. */
static inline uint32_t bits(vector v) { return (uint32_t)_mm256_movemask_epi8(v); }
#define ALL 0xffffffffu
#else
#include <emmintrin.h>
typedef __m128i vector;
static inline vector load(const void *p) { return _mm_loadu_si128(p); }
static inline void store(void *p, vector v) { _mm_storeu_si128(p, v); }
static inline void store_aligned(void *p, vector v) { _mm_store_si128(p, v); }
static inline vector filled(int c) { return _mm_set1_epi64x((long long)((unsigned char)c * 0x0101010101010101u)); }
static inline vector equal(vector a, vector b) { return _mm_cmpeq_epi8(a, b); }
static inline vector both(vector a, vector b) { return _mm_and_si128(a, b); }
static inline vector either(vector a, vector b) { return _mm_or_si128(a, b); }
static inline vector least(vector a, vector b) { return _mm_min_epu8(a, b); }
static inline uint32_t bits(vector v) { return (uint32_t)_mm_movemask_epi8(v); }
#define ALL 0xffffu
#endif
enum { V = sizeof(vector) };

/* The memory gate: the host's own code does long ranges, with the best that the processor has, and
 * faults of it are the extension's. A call of it takes about as long as 256 bytes here, which is
 * where each function goes there (with -fpostern-no-memory-gate: never). */
#ifdef NO_MEMORY_GATE
enum { GATE = 0 };
#else
enum { GATE = 1 };
#endif
void *__postern_memmove(void *, const void *, size_t);
void *__postern_memset(void *, int, size_t);
int __postern_memcmp(const void *, const void *, size_t);
/* Of a string whose first `known` bytes are not 0. */
size_t __postern_strlen(const char *, size_t known);
void *__postern_memchr(const void *, int, size_t);

static inline uint32_t zeros(vector v) { return bits(equal(v, filled(0))); }
static inline unsigned first(uint32_t mask) { return (unsigned)__builtin_ctz(mask); }
static inline unsigned last(uint32_t mask) { return 31 - (unsigned)__builtin_clz(mask); }

#endif
