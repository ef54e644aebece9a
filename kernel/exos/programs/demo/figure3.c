/* Figure 3 of the paper: three processes count in shared memory, in slices that a fourth one gives them 3:2:1, by stride scheduling;
   and before that one after the other. After each slice the counters are noted, and said as

	schedule POLICY
	trace-of LABEL LABEL LABEL
	trace SLICE COUNT COUNT COUNT
	ratio POLICY A : B : C

   in thousands, which the host draws. `figure3 SLICES`: of each policy; 120 if nothing is said. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/schedule.h>
#include <exos/shared.h>
#include <exos/yield.h>

enum { PROCESSES = 3, MOST = 600, UNIT = 1000 };

struct counter {
	volatile uint64_t value;
	char apart[56];
};

static struct counter *counters;
static struct exos_client clients[PROCESSES];
static uint64_t noted[MOST + 1][PROCESSES];

static void count(volatile uint64_t *counter)
{
	exos_without_slices();
	for (;;)
		++*counter;
}

static int begin(void)
{
	struct exos_schedule all = EXOS_SCHEDULE(&exos_round_robin, clients, PROCESSES);

	for (int k = 0; k < PROCESSES; k++) {
		clients[k].pid = fork();
		if (clients[k].pid == 0)
			count(&counters[k].value);
		if (clients[k].pid < 0)
			return -1;
	}
	/* All have given their own slices back when they count in those from here. */
	for (int k = 0; k < PROCESSES; k++)
		while (counters[k].value == 0)
			if (exos_schedule_slice(&all) < 0 && errno != EAGAIN)
				return -1;
	return 0;
}

static void figure(const char *name, const struct exos_policy *policy, int slices)
{
	struct exos_schedule schedule = EXOS_SCHEDULE(policy, clients, PROCESSES);
	double least;

	for (int k = 0; k < PROCESSES; k++)
		clients[k] = (struct exos_client){ .pid = clients[k].pid, .tickets = PROCESSES - k };
	/* The first slice is a whole one. */
	exos_yield();
	/* Nothing is said between two slices: that would be paid by who is next. */
	for (int slice = 0; slice <= slices; slice++) {
		for (int k = 0; k < PROCESSES; k++)
			noted[slice][k] = counters[k].value;
		if (slice < slices)
			exos_schedule_slice(&schedule);
	}
	printf("schedule %s\ntrace-of 3 2 1\n", name);
	for (int slice = 0; slice <= slices; slice++) {
		printf("trace %d", slice);
		for (int k = 0; k < PROCESSES; k++)
			printf(" %llu", (unsigned long long)(noted[slice][k] - noted[0][k]) / UNIT);
		printf("\n");
	}
	least = (double)(noted[slices][2] - noted[0][2]);
	printf("ratio %s", name);
	for (int k = 0; k < PROCESSES; k++)
		printf("%s %.3f", k ? " :" : "", (double)(noted[slices][k] - noted[0][k]) / (least > 0 ? least : 1));
	printf("\n");
}

int main(int arguments, char **words)
{
	int slices = arguments > 1 ? atoi(words[1]) : 120;
	struct exos_shared shared;

	if (slices < 1 || slices > MOST)
		return fprintf(stderr, "figure3: 1 to %d slices\n", MOST), 2;
	counters = exos_shared_create(sizeof *counters * PROCESSES, &shared);
	if (!counters || begin() != 0)
		return fprintf(stderr, "figure3: %s\n", strerror(errno)), 1;
	figure("round-robin", &exos_round_robin, slices);
	figure("stride", &exos_stride, slices);
	for (int k = 0; k < PROCESSES; k++) {
		kill(clients[k].pid, SIGKILL);
		waitpid(clients[k].pid, NULL, 0);
	}
	return 0;
}
