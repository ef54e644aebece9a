/* No address may ask more often than so many times in a minute: a table of counters, each of which runs dry with time. */
#include "module.h"

FOLDERS({TEXT("/private/"), 2})

enum { SLOTS = 64, MOST = 1 << 30 };

static struct {
	unsigned long who, seconds, count;
} slot[SLOTS];

static unsigned long mine;

POSTERN_EXPORT int check_access(const struct request *r)
{
	unsigned long who = hash(SEED, r->address), now = server_seconds();
	mine = who % SLOTS;
	if (slot[mine].who != who || now - slot[mine].seconds >= 60) {
		slot[mine].who = who;
		slot[mine].seconds = now;
		slot[mine].count = 0;
	}
	return slot[mine].count++ >= MOST ? 429 : DECLINED;
}

POSTERN_EXPORT int log_request(const struct request *r)
{
	put(r, LOG, TEXT("throttled"), slot[mine].count > MOST ? TEXT("yes") : TEXT("no"));
	return DECLINED;
}
