/* Schedulers of the program's own: children without slices run when they are given one, and not otherwise, in the order that the policy
   has; they end while they run, and who never existed is passed over. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/process.h>
#include <exos/schedule.h>
#include <exos/shared.h>
#include <exos/yield.h>

enum { CHILDREN = 3 };

static int failures;

static void check(const char *name, int holds, const char *why)
{
	if (holds)
		printf("ok %s\n", name);
	else
		printf("FAILED %s: %s\n", name, why), failures++;
}

/* What each child counts, and when it ends by itself; 0: never. */
struct work {
	volatile uint64_t count;
	uint64_t until;
	volatile int ready;
};

static struct work *work;
static struct exos_client clients[CHILDREN + 1];

static void child(struct work *own)
{
	if (exos_without_slices() != 0)
		_exit(1);
	own->ready = 1;
	while (own->until == 0 || own->count < own->until)
		own->count++;
	_exit(0);
}

/* Children that have given their slices back and count, each a client. */
static int begin(struct exos_schedule *schedule, const uint64_t *until)
{
	for (int k = 0; k < CHILDREN; k++) {
		work[k] = (struct work){ 0, until ? until[k] : 0, 0 };
		clients[k] = (struct exos_client){ .pid = fork() };
		if (clients[k].pid == 0)
			child(&work[k]);
		if (clients[k].pid < 0)
			return 0;
	}
	/* They have slices until they give them back: those, and a few from here. */
	*schedule = (struct exos_schedule)EXOS_SCHEDULE(&exos_round_robin, clients, CHILDREN);
	for (int k = 0; k < CHILDREN; k++)
		for (int turns = 0; !work[k].ready; turns++)
			if (turns == 10000 || (exos_schedule_slice(schedule) < 0 && errno != EAGAIN))
				return work[k].ready;
	for (int k = 0; k < CHILDREN; k++)
		clients[k] = (struct exos_client){ .pid = clients[k].pid };
	*schedule = (struct exos_schedule)EXOS_SCHEDULE(&exos_round_robin, clients, CHILDREN);
	return 1;
}

static void end(void)
{
	for (int k = 0; k < CHILDREN; k++) {
		kill(clients[k].pid, SIGKILL);
		waitpid(clients[k].pid, NULL, 0);
	}
}

static int had(uint64_t a, uint64_t b, uint64_t c)
{
	return clients[0].slices == a && clients[1].slices == b && clients[2].slices == c;
}

/* Whoever waits for this process gives it slices, too, perhaps on another processor, where it runs while a client has its slice: then
   it waits until the client is done. */
static void idle(const struct exos_schedule *schedule, int first)
{
	for (int k = first; k < CHILDREN; k++)
		while (clients[k].pid > 0 && !exos_schedule_able(schedule, k))
			exos_yield();
}

/* Gives so many slices; whether nobody counted in another's, and whoever had some counted. */
static int run(struct exos_schedule *schedule, int slices)
{
	uint64_t begun[CHILDREN], before[CHILDREN];
	int given[CHILDREN] = { 0 };

	for (int i = 0; i < CHILDREN; i++)
		begun[i] = work[i].count;
	for (int k = 0; k < slices; k++) {
		int place;

		idle(schedule, 0);
		for (int i = 0; i < CHILDREN; i++)
			before[i] = work[i].count;
		place = exos_schedule_slice(schedule);
		idle(schedule, 0);
		for (int i = 0; i < CHILDREN; i++)
			if (i == place)
				given[i]++;
			else if (work[i].count != before[i])
				return 0;
	}
	for (int i = 0; i < CHILDREN; i++)
		if ((work[i].count != begun[i]) != (given[i] != 0))
			return 0;
	return 1;
}

static void policies(void)
{
	struct exos_schedule schedule;

	if (!begin(&schedule, NULL)) {
		check("begin", 0, "no children that wait for slices");
		return;
	}
	check("round-robin", run(&schedule, 30) && had(10, 10, 10), "not each in turn");

	for (int k = 0; k < CHILDREN; k++)
		clients[k] = (struct exos_client){ .pid = clients[k].pid, .tickets = 3 - k };
	schedule.policy = &exos_stride;
	check("stride", run(&schedule, 60) && had(30, 20, 10), "not 3:2:1");
	check("slices", schedule.slices == 90, "they are not counted");

	/* A free place, and one of a process that never was. */
	clients[1].pid = -clients[1].pid;
	check("stride.leaves", run(&schedule, 40) && had(60, 20, 20), "not 3:1");
	clients[1].pid = -clients[1].pid;
	check("stride.joins", run(&schedule, 60) && clients[1].slices - 20 <= 21 && clients[1].slices - 20 >= 19,
	      "it has saved slices, or lost some");
	clients[CHILDREN].pid = 999999;
	schedule.count = CHILDREN + 1;
	check("stride.nobody", run(&schedule, 6) && clients[CHILDREN].slices == 0, "nobody had slices");
	schedule.count = CHILDREN;

	/* 1/3 + 2/4 + 1/6 is all that there is. */
	for (int k = 0; k < CHILDREN; k++)
		clients[k] = (struct exos_client){ .pid = clients[k].pid, .tickets = k == 1 ? 2 : 1, .period = (unsigned[]){ 3, 4, 6 }[k] };
	schedule.policy = &exos_deadline;
	check("deadline", run(&schedule, 60) && had(20, 30, 10), "a deadline was missed");
	end();
}

/* A policy of the program's own: two slices each. It chooses wrongly when it is told to. */
static int wrong;

static int two_each(struct exos_schedule *schedule)
{
	if (wrong)
		return wrong;
	return (int)(schedule->slices / 2 % (unsigned)schedule->count);
}

static void count(struct exos_schedule *schedule, int place, unsigned long long slices)
{
	schedule->clients[place].slices += slices;
}

static void own_policy(void)
{
	static const struct exos_policy own = { two_each, count };
	struct exos_schedule schedule;

	if (!begin(&schedule, NULL)) {
		check("own.begin", 0, "no children that wait for slices");
		return;
	}
	schedule.policy = &own;
	check("own", run(&schedule, 30) && had(10, 10, 10), "not two each");
	check("own.order", run(&schedule, 3) && had(12, 11, 10), "not two each");
	for (int k = 0; k < 3; k++) {
		wrong = (int[]){ 99, -7, 0x7fffffff }[k];
		errno = 0;
		check("own.wrong", exos_schedule_slice(&schedule) == -1 && errno == EAGAIN, "a place that is none was taken");
	}
	end();
}

static void ends(void)
{
	static const uint64_t until[CHILDREN] = { 1, 50000, 0 };
	struct exos_schedule schedule;
	uint64_t before;

	if (!begin(&schedule, until)) {
		check("ends.begin", 0, "no children that wait for slices");
		return;
	}
	for (int k = 0; k < 300 && work[1].count < until[1]; k++)
		exos_schedule_slice(&schedule);
	/* They tell the registry, which takes slices of theirs, too. */
	for (int k = 0; k < 2; k++)
		while (exos_find(clients[k].pid)->state == EXOS_LIVES) {
			exos_schedule_slice(&schedule);
			idle(&schedule, 2);
		}
	before = clients[2].slices;
	for (int k = 0; k < 10; k++) {
		idle(&schedule, 2);
		exos_schedule_slice(&schedule);
	}
	check("ends", clients[2].slices == before + 10, "the one that is left does not run");
	kill(clients[2].pid, SIGKILL);
	errno = 0;
	check("ends.all", exos_schedule_run(&schedule, 100) == -1 && errno == ESRCH, "nobody is left, and that is not said");
	for (int k = 0; k < CHILDREN; k++)
		waitpid(clients[k].pid, NULL, 0);
	errno = 0;
	check("ends.waited", exos_schedule_run(&schedule, 1) == -1 && errno == ESRCH, "they are not known, and that is not said");
	schedule.count = 0;
	check("none", exos_schedule_slice(&schedule) == -1 && errno == ESRCH, "no clients");
	check("nothing", exos_schedule_slice(NULL) == -1 && errno == EINVAL, "no schedule");
}

int main(void)
{
	struct exos_shared words;

	work = exos_shared_create(sizeof *work * CHILDREN, &words);
	if (!work)
		return perror("shared memory"), 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	policies();
	own_policy();
	ends();
	return failures != 0;
}
