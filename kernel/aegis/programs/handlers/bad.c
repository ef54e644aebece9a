/* Does what the first byte of the shared page says, of what no handler should do. */
long send(const void *frame, unsigned long length);
long put(unsigned long place, unsigned long capability, const void *from, unsigned long length);

struct shared {
	volatile unsigned long what, where, done, other;
};

static unsigned long deep(unsigned long n)
{
	volatile unsigned long room[2000];

	room[n & 1023] = n;
	return room[n & 1023] + 1;
}

long message(unsigned long *in, unsigned long length, unsigned long endpoint)
{
	struct shared *shared = (struct shared *)0x100000;
	volatile unsigned long *where = (volatile unsigned long *)shared->where;
	unsigned long i;

	switch (shared->what) {
	case 0:	/* reads */
		shared->other = *where;
		break;
	case 1:	/* stores */
		*where = 1;
		break;
	case 2:	/* never ends */
		for (;;)
			shared->other++;
	case 3:	/* divides */
		shared->other = 1 / shared->other;
		break;
	case 4:	/* sends without an end */
		for (;;)
			shared->other += send(in, length) == 0;
	case 5:	/* has a place copied that is not there */
		put(shared->where, 0, (void *)shared->other, 64);
		break;
	case 6:	/* has more copied than a page has */
		put(shared->where, 0, in, shared->other);
		break;
	case 7:	/* sends a frame that is none */
		shared->other = send(in, shared->where);
		break;
	case 8:	/* has more on its stack than there is */
		shared->other = deep(shared->other);
		break;
	case 9:	/* takes long, and ends */
		for (i = 0; i < shared->other; i++)
			shared->where = i;
		break;
	}
	shared->done++;
	return 1;
}
