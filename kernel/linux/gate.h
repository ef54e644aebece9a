/* SPDX-License-Identifier: GPL-2.0 */
/* What gate.S knows of `struct invocation`: offsets of its fields, which call.c asserts. */
#ifndef POSTERN_GATE_H
#define POSTERN_GATE_H

#define INVOCATION_STACK 0
#define INVOCATION_OUTER 8
#define INVOCATION_SERVICES 16
#define INVOCATION_AT 24
#define INVOCATION_TOUCHED 32
#define INVOCATION_ENDED 40
#define INVOCATION_SERVICE 44
/* The landings of page faults: so many, each for so much of the arena. */
#define LANDINGS 64
#define LANDING_SIZE 16
#define LANDING_SHARE 16 /* log2 of the bytes */

#endif
