/* SPDX-License-Identifier: GPL-2.0 */
/* What gate.S knows of structures: offsets of fields, which call.c asserts. */
#ifndef POSTERN_GATE_H
#define POSTERN_GATE_H

#define INVOCATION_STACK 0
#define INVOCATION_OUTER 8
#define INVOCATION_SERVICES 16
#define INVOCATION_AT 24
#define INVOCATION_TOUCHED 32
#define INVOCATION_ENDED 40 /* and ticks */
#define INVOCATION_SERVICE 48
#define INVOCATION_STACK_TOP 52
#define INVOCATION_BASE 56
#define INVOCATION_KIND 64
#define INVOCATION_SUBJECT 72
#define INVOCATION_COUNTERS 80
#define INVOCATION_WINDOW 88
#define INVOCATION_ONLY 96
#define INVOCATION_SIZE 128
#define WINDOW_BUSY 8 /* and stale */
#define EXTENSION_DOORS_OPEN 0
#define EXTENSION_DOORS 8
#define EXTENSION_INVOCATIONS 16
#define DOOR_SIZE 16
#define PREEMPT_COUNT_OFFSET 8 /* in pcpu_hot, where there is one */
/* The landings of page faults: so many, each for so much of the arena. */
#define LANDINGS 64
#define LANDING_SIZE 16
#define LANDING_SHARE 16 /* log2 of the bytes */

#endif
