/* Counts messages and their bytes in a page that it shares with its owner, and is done with them. */
struct shared {
	volatile unsigned long messages, bytes, last, endpoint, first;
};

long message(const unsigned long *in, unsigned long length, unsigned long endpoint)
{
	struct shared *shared = (struct shared *)0x100000;

	shared->messages++;
	shared->bytes += length;
	shared->last = length;
	shared->endpoint = endpoint;
	shared->first = in[2];
	return 1;
}
