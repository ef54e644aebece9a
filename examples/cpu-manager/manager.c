/*
 * Holds processes to their shares of a processor: each gets its target, C of every T, by a PID
 * controller of its timeslice; processes of the background give way while they run.
 *
 * One state, for whoever calls: a process, a thread, or handlers that interrupt the controlled
 * processes themselves. A tick may stop in the middle for as long as its process has to wait, so
 * nobody waits for it: its turn lapses, and what it still writes afterwards is bounded here when it
 * is read. All arithmetic is of integers: times of the host in nanoseconds, all others in
 * microseconds.
 */
#include <stdint.h>

#define MOST 16
#define SHORTEST 1000	   /* of timeslices and periods: the least that the kernel takes as a quota */
#define LONGEST 1000000	   /* of periods: the most that it takes */
#define TURN 50000000	   /* ns after which a tick's turn lapses */
#define AWAY 1000000000000 /* ns between two looks after which nothing is known */
#define RUNNING 1000000	   /* ns between two ticks by which a background process is active */
#define GAIN 256	   /* a gain of 1 */
#define AVERAGE 16	   /* periods of the long average */
#define PARTS 10	   /* of a period in which the kernel hands out the timeslice, at most */

/* Of the host. Processes have numbers below MOST. Times that are negative are errors. */
extern int64_t manager_time(void);
extern int64_t thread_time(void);
extern int64_t process_time(uint32_t process);
extern int32_t set_quota(uint32_t process, uint64_t slice, uint64_t period);
extern int32_t set_background(uint32_t process);

enum state { NONE, CLIENT, BACKGROUND, ENDED };

struct process {
	int64_t state;
	int64_t target, period, slice;
	int64_t parts; /* in how many a timeslice is handed out */
	int64_t due, seen, used; /* ns: when it is looked at next, was last, and what it had used */
	int64_t sum, error;	 /* of all errors, and the last one */
	int64_t average;	 /* of what it used in a period, times AVERAGE */
	int64_t periods, late, refused, lowered;
};

/* What the host reads: words of 64 bits. */
struct manager {
	int64_t ticks, skipped, lapsed, busy, widest; /* busy: ns of processor time in
						      ticks; widest: ns between two */
	int64_t last;
	int64_t gains[3];
	struct process processes[MOST];
};

static struct manager manager = { .gains = { GAIN / 4, GAIN / 4, GAIN / 16 } };
static int64_t turn; /* when the tick began that has it; 0: nobody */

static int64_t bounded(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

const struct manager *manager_state(void)
{
	return &manager;
}

/* Gains in 256ths. 0, or -1 if one is out of range. */
int32_t manager_gains(int32_t p, int32_t i, int32_t d)
{
	int32_t gains[3] = { p, i, d };

	for (int k = 0; k < 3; k++)
		if (gains[k] < 0 || gains[k] > 16 * GAIN)
			return -1;
	for (int k = 0; k < 3; k++)
		manager.gains[k] = gains[k];
	return 0;
}

/*
 * Whoever sets a quota refills it, so a step of the controller costs up to a whole one; and the
 * kernel's periods are not in phase with ours. Small parts of both make that small.
 */
static void write_quota(uint32_t number, struct process *p, int64_t slice)
{
	int64_t parts = bounded(p->parts, 1, PARTS);
	int64_t quota = bounded(slice / parts, SHORTEST, LONGEST);

	if (set_quota(number, quota, bounded(p->period / parts, quota, LONGEST)) == 0)
		p->slice = slice;
	else
		p->refused++;
}

static int32_t begin(uint32_t number, struct process made)
{
	struct process *p = &manager.processes[number % MOST];
	int64_t used = process_time(number), now = manager_time();

	if (used < 0 || now < 0)
		return -1;
	made.parts = bounded(made.target / (2 * SHORTEST), 1, PARTS);
	made.average = made.target * AVERAGE;
	made.seen = now;
	made.used = used;
	made.due = now + made.period * 1000;
	p->state = NONE; /* nobody controls half of it */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	int64_t state = made.state;
	made.state = NONE;
	*p = made;
	if (state == CLIENT)
		write_quota(number, p, made.target);
	__atomic_store_n(&p->state, state, __ATOMIC_RELEASE);
	return 0;
}

/* Controls a process: so much of every period, both in us. 0, or -1 if that cannot be. */
int32_t manager_client(uint32_t number, uint64_t target, uint64_t period)
{
	if (number >= MOST || period < SHORTEST || period > LONGEST || target < SHORTEST ||
	    target > period)
		return -1;
	return begin(number, (struct process){ .state = CLIENT, .target = target, .period = period });
}

/* A process that is lowered whenever it runs. 0, or -1. */
int32_t manager_background(uint32_t number)
{
	if (number >= MOST)
		return -1;
	return begin(number, (struct process){ .state = BACKGROUND });
}

/* A process is left alone from now on. */
int32_t manager_forget(uint32_t number)
{
	if (number >= MOST)
		return -1;
	__atomic_store_n(&manager.processes[number].state, NONE, __ATOMIC_RELEASE);
	return 0;
}

/* The next timeslice of a client that has used so much of its last period. */
static int64_t controlled(struct process *p, int64_t used)
{
	int64_t target = bounded(p->target, SHORTEST, LONGEST);
	int64_t period = bounded(p->period, target, LONGEST);
	int64_t error = target - used;
	/* What cannot be made up for is not summed: four targets. */
	int64_t sum = bounded(bounded(p->sum, -4 * target, 4 * target) + error, -4 * target, 4 * target);
	int64_t change = error - bounded(p->error, -LONGEST, LONGEST);
	int64_t correction = 0;
	int64_t parts[3] = { error, sum, change };

	for (int k = 0; k < 3; k++)
		correction += bounded(manager.gains[k], 0, 16 * GAIN) * parts[k] / GAIN;
	p->sum = sum;
	p->error = error;
	p->average = bounded(p->average, 0, LONGEST * AVERAGE);
	p->average += used - p->average / AVERAGE;

	int64_t slice = bounded(target + correction, SHORTEST, period);
	/* The guard: it grows only while the long average is at most twice the target. */
	if (slice > p->slice && p->average > 2 * target * AVERAGE)
		return bounded(p->slice, SHORTEST, period);
	return slice;
}

static void look_at_client(uint32_t number, struct process *p, int64_t now)
{
	int64_t period = bounded(p->period, SHORTEST, LONGEST) * 1000;

	/* A time that lies further ahead than a period is not the controller's. */
	if (now < p->due && p->due - now <= period)
		return;
	int64_t used = process_time(number);
	if (used < 0) {
		p->state = ENDED;
		return;
	}
	int64_t passed = now - p->seen, spent = used - p->used;
	p->seen = now;
	p->used = used;
	if (passed < 0 || passed > AWAY || spent < 0) {
		p->due = now + period;
		p->late++;
		return;
	}
	if (passed >= 2 * period)
		p->late++;
	p->due = now - p->due >= period || p->due > now ? now + period : p->due + period;
	if (passed < 1000)
		return;
	/* As if it had been looked at after just a period. */
	int64_t measured = bounded(spent, 0, passed) / 1000 * (period / 1000) / (passed / 1000);
	p->periods++;
	int64_t slice = controlled(p, measured), step = slice - p->slice;
	/* Each write refills the quota, so small changes wait. */
	if (step > p->slice / 64 || -step > p->slice / 64)
		write_quota(number, p, slice);
}

static void look_at_background(uint32_t number, struct process *p)
{
	int64_t used = process_time(number);

	if (used < 0) {
		p->state = ENDED;
		return;
	}
	int64_t spent = used - p->used;
	p->used = used;
	if (spent < RUNNING)
		return;
	if (set_background(number) == 0)
		p->lowered++;
	else
		p->refused++;
}

static void look(int64_t now)
{
	__atomic_fetch_add(&manager.ticks, 1, __ATOMIC_RELAXED);
	if (manager.last && now - manager.last > manager.widest)
		manager.widest = now - manager.last;
	manager.last = now;
	/* Without a turn: what keeps others from their turns is here. */
	for (uint32_t k = 0; k < MOST; k++)
		if (__atomic_load_n(&manager.processes[k].state, __ATOMIC_ACQUIRE) == BACKGROUND)
			look_at_background(k, &manager.processes[k]);

	int64_t before = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);
	if (before > 0 && before <= now && now - before < TURN) {
		__atomic_fetch_add(&manager.skipped, 1, __ATOMIC_RELAXED);
		return;
	}
	if (!__atomic_compare_exchange_n(&turn, &before, now, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	if (before)
		manager.lapsed++;
	for (uint32_t k = 0; k < MOST; k++) {
		/* Whoever stopped for so long that another one has the turn leaves it to that one. */
		if (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != now)
			return;
		if (__atomic_load_n(&manager.processes[k].state, __ATOMIC_ACQUIRE) == CLIENT)
			look_at_client(k, &manager.processes[k], now);
	}
	int64_t mine = now;
	__atomic_compare_exchange_n(&turn, &mine, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* A timer's event; its number and data say nothing. */
void tick(uint32_t event, uint64_t data)
{
	(void)event, (void)data;
	int64_t now = manager_time(), before = thread_time();

	if (now > 0)
		look(now);
	manager.busy += thread_time() - before;
}
