/* Copies a message to the shared page, and sums it meanwhile. */
struct shared {
	volatile unsigned long sum, messages;
	unsigned long copy[180];
};

long message(const unsigned long *in, unsigned long length, unsigned long endpoint)
{
	struct shared *shared = (struct shared *)0x100000;
	unsigned long sum = 0, word;

	for (int i = 0; i < 180; i++) {
		word = in[i];
		shared->copy[i] = word;
		sum += word;
		sum += sum < word;
	}
	shared->sum = sum;
	shared->messages++;
	return 1;
}
