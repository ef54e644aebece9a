/* All sizes up to 100 bytes from and to all places near each other, byte for byte as loops have it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *own_memcpy(void *, const void *, size_t);
void *own_memmove(void *, const void *, size_t);
void *own_memset(void *, int, size_t);
int own_memcmp(const void *, const void *, size_t);
int own_bcmp(const void *, const void *, size_t);

#define SIZE 256

static unsigned char bytes[SIZE], expected[SIZE];

static void check(int holds, const char *what, int size, int to, int from)
{
	if (!holds) {
		printf("%s of %d bytes from %d to %d\n", what, size, from, to);
		exit(1);
	}
}

static void begin(void)
{
	for (int i = 0; i < SIZE; i++)
		bytes[i] = expected[i] = (unsigned char)(i * 37 + i / 7);
}

int main(void)
{
	static unsigned char others[SIZE];

	for (int size = 0; size <= 100; size++) {
		for (int to = 0; to < 130; to++) {
			for (int from = to < 48 ? 0 : to - 48; from < to + 48 && from < 130; from += 1) {
				begin();
				for (int i = 0; i < size; i++)
					expected[to + i] = (unsigned char)((from + i) * 37 + (from + i) / 7);
				check(own_memmove(bytes + to, bytes + from, size) == bytes + to, "the result", size, to, from);
				check(!memcmp(bytes, expected, SIZE), "memmove", size, to, from);
				if (from + size > to && to + size > from)
					continue;
				begin();
				for (int i = 0; i < size; i++)
					expected[to + i] = bytes[from + i];
				check(own_memcpy(bytes + to, bytes + from, size) == bytes + to, "the result", size, to, from);
				check(!memcmp(bytes, expected, SIZE), "memcpy", size, to, from);
			}
			begin();
			for (int i = 0; i < size; i++)
				expected[to + i] = 0xab;
			check(own_memset(bytes + to, 0x5ab, size) == bytes + to, "the result", size, to, 0);
			check(!memcmp(bytes, expected, SIZE), "memset", size, to, 0);
		}
		for (int differs = 0; differs <= size; differs++) {
			for (int up = 0; up < 2; up++) {
				begin();
				memcpy(others, bytes, SIZE);
				/* Behind the first difference there are others, the other way. */
				for (int i = differs; i < SIZE; i++)
					others[i] = (unsigned char)(bytes[i] ^ 0x80);
				bytes[differs] = up ? 0xff : 0;
				others[differs] = up ? 0x7f : 0x80;
				int is = own_memcmp(bytes, others, size), should = differs == size ? 0 : up ? 1 : -1;
				check((is > 0) - (is < 0) == should, "memcmp", size, differs, up);
				check(!own_bcmp(bytes, others, size) == !should, "bcmp", size, differs, up);
			}
		}
	}
	return 0;
}
