/* Counts bytes behind messages that are not zero. */
struct shared {
	volatile unsigned long found, messages;
};

long message(const unsigned char *in, unsigned long length, unsigned long endpoint)
{
	struct shared *shared = (struct shared *)0x100000;

	for (unsigned long i = length; i < 4096 - 16; i++)
		shared->found += in[i] != 0;
	shared->messages++;
	return 1;
}
