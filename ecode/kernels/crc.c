/* CRC-32 by a table of 256 entries. */
typedef unsigned int u32;

static u32 table[256];
static unsigned char data[65536];

static void make_table(void)
{
	u32 i, j;

	for (i = 0; i < 256; i++) {
		u32 crc = i;

		for (j = 0; j < 8; j++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
		table[i] = crc;
	}
}

u32 crc32(u32 crc, const unsigned char *bytes, unsigned long length)
{
	crc = ~crc;
	while (length--)
		crc = table[(crc ^ *bytes++) & 255] ^ crc >> 8;
	return ~crc;
}

long kernel(long rounds)
{
	long round, i;
	u32 crc = 0;

	make_table();
	for (i = 0; i < (long)sizeof data; i++)
		data[i] = i * 31 + (i >> 8);
	for (round = 0; round < rounds; round++)
		crc = crc32(crc, data, sizeof data);
	return crc;
}
