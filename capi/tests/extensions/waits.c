/* A handler that has to wait, and functions for a thread of the domain's pool. */
#include <postern/threads.h>
#include <postern/upcall.h>

extern int told(int number);

static unsigned done;

static void tells(int number)
{
	if (told(number) == number + 1)
		__atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST);
}

void on(unsigned event, unsigned long data)
{
	(void)event;
	tells((int)data);
}

static void work(void *item) { tells((int)(long)item); }

int spawn(int number) { return postern_spawn(work, (void *)(long)number); }
unsigned done_of(void) { return __atomic_load_n(&done, __ATOMIC_SEQ_CST); }
