/* What processes at the device are tested with: calls, faults, the shared area, maps, ring, queue. */
#include <postern/extension.h>
#include <stddef.h>
#include <stdint.h>

POSTERN_IMPORT int postern_map_set(unsigned map, const void *key, size_t key_size, const void *value,
				   size_t value_size);
POSTERN_IMPORT int postern_ring_write(const void *bytes, size_t size);

__attribute__((aligned(4096))) uint32_t postern_shared[1024];
static long calls;

long add(long a, long b)
{
	return a + b;
}

long count(void)
{
	return ++calls;
}

long sum(void)
{
	long sum = 0;

	for (int k = 0; k < 1024; k++)
		sum += postern_shared[k];
	return sum;
}

long store(uint32_t at, uint32_t value)
{
	postern_shared[at % 1024] = value;
	return 0;
}

long peek(const long *where)
{
	return *where;
}

long half(long a, long b)
{
	return a / b;
}

long spin(void)
{
	for (;;)
		__asm__ volatile("nop");
}

long tell(uint32_t number)
{
	uint64_t value = number * 10ull;

	return postern_map_set(0, &number, sizeof(number), &value, sizeof(value)) &&
	       postern_ring_write(&value, sizeof(value));
}

long tick(uint64_t now)
{
	return ++postern_shared[1023];
}
