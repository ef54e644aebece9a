/* Schedulers as libraries: a process that has slices gives each of them to one of the processes
   that it is responsible for, by yielding to it. It needs no privilege, and nobody else hears of
   it.

	struct exos_client clients[] = { { .pid = a, .tickets = 3 }, { .pid = b, .tickets = 2 }, { .pid = c, .tickets = 1 } };
	struct exos_schedule schedule = EXOS_SCHEDULE(&exos_stride, clients, 3);

	while (exos_schedule_run(&schedule, 100) == 0)
		...;

   Clients are started by fork, and call exos_without_slices first of all; one that has slices of
   its own has those besides. What a client starts has slices of its own again. */
#ifndef EXOS_SCHEDULE_H
#define EXOS_SCHEDULE_H

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Who is scheduled. All zero but the pid is one ticket; all may be changed between two slices, and
   a place is free if its pid is 0. */
struct exos_client {
	pid_t pid;
	unsigned tickets; /* its share, against the others'; of a deadline: slices in each period. 0 counts as 1 */
	unsigned period;  /* slices from one deadline to the next */
	unsigned left;    /* slices that are left to it before its deadline */
	long long when;   /* when it is next, in the policy's own measure */
	unsigned long long slices;  /* slices that it has had */
	unsigned long long refused; /* the library's own */
};

struct exos_schedule;

/* A policy. The program's own is two functions of its own. */
struct exos_policy {
	/* The place of a client that is able to run, or -1: none. */
	int (*choose)(struct exos_schedule *schedule);
	/* The client of a place has had so many slices: almost always 1. May be NULL. */
	void (*charge)(struct exos_schedule *schedule, int place, unsigned long long slices);
};

extern const struct exos_policy exos_round_robin; /* one after the other */
extern const struct exos_policy exos_stride;      /* shares by tickets, within one slice */
extern const struct exos_policy exos_deadline;    /* earliest deadline first: tickets in each period */

/* The policy of schedules that name none (NULL): a piece that a program replaces by defining it.
   The library's is round robin. */
extern const struct exos_policy exos_scheduler;

struct exos_schedule {
	const struct exos_policy *policy;
	struct exos_client *clients;
	int count;
	int last;                  /* the place that had the last slice, or -1 */
	unsigned long long slices; /* slices that were given so far */
	unsigned long long tries;  /* the library's own */
};

#define EXOS_SCHEDULE(policy, clients, count) { (policy), (clients), (count), -1, 0, 1 }

/* Whether the client of a place could run now: it lives, and no other processor runs it. Whether it
   waits for something is known when it is given a slice: it refuses, and is not able for the rest
   of this slice. */
int exos_schedule_able(const struct exos_schedule *schedule, int place);

/* Gives what is left of this slice to the client that the policy chooses, and comes back when the
   next one begins: its place. -1 with errno EAGAIN: nobody is able now, and the slice has ended;
   ESRCH: none of them lives. */
int exos_schedule_slice(struct exos_schedule *schedule);

/* Gives so many slices; those in which nobody is able count, too. 0, or -1 with ESRCH when none of
   them lives. */
int exos_schedule_run(struct exos_schedule *schedule, unsigned long slices);

/* Gives the caller's own slices back, and ends this one: from now on it runs in slices that others
   give it. */
int exos_without_slices(void);

#ifdef __cplusplus
}
#endif

#endif
