/* replay.c: an agent that tells a program what it was told when record.c looked on.
 *
 *     postern cc -O2 replay.c -o replay.px
 *     postern interpose --no-vdso replay.px run.log -- ./program
 *
 * Calls that are in the log have from there what they had then, and are not made: but for those that
 * write to the standard output or error, and those that open files, which are made so that they can be
 * mapped; no file is created or emptied. Where one is not there any more, it is /dev/null, of which
 * nothing is read. A program that makes another call than it did ends with status 125, and it is said
 * which. */
#include "log.h"

/* Bytes of the log so far. */
static unsigned long log_at;

enum { WRITE = 1, OPEN = 2, PREAD = 17, WRITEV = 20, SOCKET = 41 };

void pt_agent_begin(void)
{
	log_begin();
	log_close(log_open(0));
}

/* A descriptor in the place of one that cannot be made again. */
static long take_descriptor(void)
{
	static const char nothing[] = "/dev/null";
	return log_call(OPEN, pt_address(nothing), 2, 0, 0);
}

static void differs(const struct pt_call *call, const char *why, const char *name)
{
	char text[128];
	snprintf(text, sizeof text, "%s: %s%s", call_name(call->number), why, name ? name : "another call");
	log_fail(text, "");
}

int pt_agent(struct pt_call *call)
{
	const struct logged *how = pt_thread() == log_process ? logged_as(call) : 0;
	struct head head;
	struct piece pieces[PIECES];
	if (!how)
		return PT_PASS;
	long file = log_open(0);
	long got = log_call(PREAD, file, pt_address(&head), sizeof head, log_at);
	if (got != sizeof head)
		differs(call, "the log ends before it", "");
	if (head.number != call->number)
		differs(call, "the log has ", call_name(head.number));
	if (head.given != log_given(call, how))
		differs(call, "it was given something else", "");
	log_at += sizeof head;
	log_calls++;
	call->result = head.result;
	/* An address' length comes first: how long that is, it says. */
	unsigned count = log_written(call, how, pieces);
	if (how->written[1].size == LENGTH_ITSELF && head.bytes >= 4 && count > 0) {
		unsigned length = head.bytes - 4;
		pt_program_write(pieces[count - 1].at, &length, sizeof length);
		count = log_written(call, how, pieces);
	}
	unsigned long end = log_at + head.bytes;
	for (unsigned at = 0; at < count && log_at < end; at++) {
		unsigned long bytes = pieces[at].bytes < end - log_at ? pieces[at].bytes : end - log_at;
		if (log_call(PREAD, file, pieces[at].at, bytes, log_at) != (long)bytes)
			differs(call, "its buffer is not there", "");
		log_at += bytes;
	}
	log_at = end;
	log_close(file);
	if (how->way == MADE && head.result >= 0) {
		enum { CREATE_ALONE_AND_EMPTY = 01300 };
		if (call->number != SOCKET)
			call->arguments[call->number == OPEN ? 1 : 2] &= ~(unsigned long)CREATE_ALONE_AND_EMPTY;
		call->note = head.result;
		return PT_PASS_AFTER;
	}
	if (how->way == TAKEN && head.result >= 0 && take_descriptor() != head.result)
		differs(call, "another descriptor is free", "");
	if ((call->number == WRITE || call->number == WRITEV) && (call->arguments[0] == 1 || call->arguments[0] == 2))
		return PT_PASS;
	return PT_ANSWER;
}

void pt_agent_after(struct pt_call *call)
{
	if (call->result < 0)
		call->result = take_descriptor();
	if (call->result != (long)call->note)
		differs(call, "another descriptor is free", "");
}
