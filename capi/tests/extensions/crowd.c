/* Threads that an extension starts itself, without the C library. */
extern int __postern_thread_start(void (*function)(void *), void *argument);
extern int __postern_wait(const void *word, unsigned value, long long nanoseconds);
extern int __postern_wake(const void *word, unsigned most);
extern int met(int number);

static unsigned counter, running;
static _Thread_local int own = 7;

static void counts(void *many)
{
	for (long i = 0; i < (long)many; i++)
		__atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);
	own += met(own);
	if (own == 8)
		__atomic_fetch_add(&counter, 1000000, __ATOMIC_SEQ_CST);
	__atomic_fetch_sub(&running, 1, __ATOMIC_SEQ_CST);
	__postern_wake(&running, 1);
}

/* Has so many threads count to `many`: how many there were. */
int crowd(int threads, long many)
{
	int started = 0;
	for (; threads > 0; threads--) {
		__atomic_fetch_add(&running, 1, __ATOMIC_SEQ_CST);
		if (__postern_thread_start(counts, (void *)many) == 0)
			started++;
		else
			__atomic_fetch_sub(&running, 1, __ATOMIC_SEQ_CST);
	}
	for (unsigned left; (left = __atomic_load_n(&running, __ATOMIC_SEQ_CST));)
		__postern_wait(&running, left, -1);
	return started;
}
unsigned counted(void) { return counter; }

static void spins(void *unused)
{
	for (;;)
		__atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);
}
static void breaks(void *unused) { *(volatile int *)8 = 1; }
int start_spinning(void) { return __postern_thread_start(spins, 0); }
int start_breaking(void) { return __postern_thread_start(breaks, 0); }
