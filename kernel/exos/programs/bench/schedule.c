/* What a scheduler of the program's own takes for a slice: who is next, the processor given to it, and given back by it at once. Linux's
   scheduler is its kernel's. */
#include "measure.h"

#ifdef __exos__
#include <signal.h>
#include <unistd.h>

#include <exos/schedule.h>
#include <exos/yield.h>

enum { CLIENTS = 3 };

static struct exos_client clients[CLIENTS];

static void slice(const char *name, const struct exos_policy *policy)
{
	struct exos_schedule schedule = EXOS_SCHEDULE(policy, clients, CLIENTS);
	uint64_t took;

	LEAST(took, TRIES, exos_schedule_slice(&schedule));
	row(name, took, 1);
}

int main(void)
{
	struct exos_schedule schedule = EXOS_SCHEDULE(&exos_round_robin, clients, CLIENTS);
	unsigned back = exos_environment();

	for (int k = 0; k < CLIENTS; k++) {
		clients[k].pid = fork();
		if (clients[k].pid < 0)
			return 1;
		if (clients[k].pid == 0)
			for (exos_without_slices();;)
				exos_yield_to(back);
	}
	/* All have given their own slices back by then. */
	exos_schedule_run(&schedule, 10 * CLIENTS);
	for (int k = 0; k < CLIENTS; k++)
		clients[k] = (struct exos_client){ .pid = clients[k].pid, .tickets = CLIENTS - k, .period = 6 };
	slice("round-robin", &exos_round_robin);
	slice("stride", &exos_stride);
	slice("deadline", &exos_deadline);
	for (int k = 0; k < CLIENTS; k++)
		kill(clients[k].pid, SIGKILL);
	return 0;
}
#else
int main(void)
{
	return 0;
}
#endif
