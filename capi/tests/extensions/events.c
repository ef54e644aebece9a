/* Handlers of events. */
#include <postern/upcall.h>

static volatile unsigned long calls, total, last;

void on(unsigned event, unsigned long data)
{
	(void)event;
	__atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&total, data, __ATOMIC_SEQ_CST);
	last = data;
}

/* Wakes the client whose number came. */
void wakes(unsigned event, unsigned long data)
{
	(void)event;
	last = postern_client_wake((unsigned)data);
}

/* Sends the event whose number came to the thread that it runs on. */
void sends(unsigned event, unsigned long data)
{
	(void)event;
	last = postern_client_send((unsigned)postern_client(), (unsigned)data, 9);
}

/* Fills a page with its number. */
void fills(unsigned event, unsigned long data)
{
	static _Alignas(4096) char page[4096];
	(void)event;
	for (int i = 0; i < 4096; i++)
		page[i] = (char)(data >> 12);
	last = postern_page_fill(data, page);
}

void nices(unsigned event, unsigned long data)
{
	(void)event;
	last = postern_client_nice((unsigned)postern_client(), (int)data);
}

unsigned long calls_of(void) { return calls; }
unsigned long total_of(void) { return total; }
unsigned long last_of(void) { return last; }
