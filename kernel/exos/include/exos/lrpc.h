/* Calls of procedures in other processes. The processor goes to the server with the caller's
   registers as the message, and comes back with the answer; nothing is queued, and no kernel keeps
   anything. A server is named by its environment's number. */
#ifndef EXOS_LRPC_H
#define EXOS_LRPC_H

#include <stdint.h>

#include <exos/yield.h>

/* Errors of calls. */
#define EXOS_GONE (-4)    /* the server has ended, or there is none */
#define EXOS_BUSY (-5)    /* it serves another call, does not serve, or runs elsewhere: once more */
#define EXOS_SILENT (-13) /* it has not answered for so many slices as exos_lrpc_patience says; an answer that comes later is lost */

/* 0 and what the procedure returned, or an error and 0. */
struct exos_answer {
	long error;
	uint64_t value;
};

/* Calls the server's procedure, and keeps all registers that a function keeps, whatever the server
   does with them. What the caller has in registers the server can read. */
struct exos_answer exos_lrpc(unsigned server, uint64_t a, uint64_t b, uint64_t c, uint64_t d) __asm__("aegis_call");

/* The same, but the server is trusted to keep them when it answers, as the procedures of
   exos_lrpc_serve do. After an error they are what they were. */
struct exos_answer exos_tlrpc(unsigned server, uint64_t a, uint64_t b, uint64_t c, uint64_t d) __asm__("aegis_call_trusting");

/* Slices of the caller's that begin before it goes on without an answer: 4096 at first. */
void exos_lrpc_patience(unsigned slices);

/* Serves: each call is one of this function, with the caller's number, one after the other. Returns
   0 when `*until` is not 0 any more, which the procedure or another process sets; -1 in a handler.
   */
typedef uint64_t exos_procedure(unsigned caller, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
long exos_lrpc_serve(exos_procedure *procedure, volatile int *until) __asm__("aegis_serve");

#endif
