/* record.c: an agent that writes down what a program is told, for replay.c.
 *
 *     postern cc -O2 record.c -o record.px
 *     postern interpose --no-vdso record.px run.log -- ./program
 *
 * Of the first process and its first thread; others are not recorded. Without --no-vdso, the time is
 * not seen. */
#include "log.h"

void pt_agent_begin(void)
{
	enum { CREATE_AND_EMPTY = 01101 };
	log_begin();
	log_close(log_open(CREATE_AND_EMPTY));
}

int pt_agent(struct pt_call *call)
{
	const struct logged *how = pt_thread() == log_process ? logged_as(call) : 0;
	if (!how)
		return PT_PASS;
	call->note = log_given(call, how);
	return PT_PASS_AFTER;
}

void pt_agent_after(struct pt_call *call)
{
	enum { WRITEV = 20, APPEND = 02001 };
	struct piece pieces[1 + PIECES];
	struct head head = {call->number, 0, call->result, call->note};
	unsigned count = 1 + log_written(call, logged_as(call), pieces + 1);
	for (unsigned at = 1; at < count; at++)
		head.bytes += pieces[at].bytes;
	pieces[0] = (struct piece){pt_address(&head), sizeof head};
	long file = log_open(APPEND);
	long wrote = log_call(WRITEV, file, pt_address(pieces), count, 0);
	log_close(file);
	if (wrote != (long)(sizeof head + head.bytes))
		log_fail("not all of it can be written to ", log_path);
	log_calls++;
}
