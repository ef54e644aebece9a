/* postern/policy.h: for extensions that decide about the calls of other extensions, and for those
 * that give back what the host asks for.
 *
 * A policy module exports
 *
 *     long decide(struct postern_request *request);
 *
 * which is asked before a domain's call of a service or of the system is made. The request is the
 module's own copy, on its own data stack; it may be written. */
#ifndef POSTERN_POLICY_H
#define POSTERN_POLICY_H

/* What `decide` returns. Everything else, and every call of `decide` that does not return, is a
 * denial that the host counts. */
#define POSTERN_ALLOW 0L      /* 1 to 4095: denied, with this errno */
#define POSTERN_EMULATE (-1L) /* `value` is the call's result */
#define POSTERN_KILL (-2L)    /* the caller's whole call ends as a fault, for `reason` */

enum { POSTERN_SERVICE = 1, POSTERN_SYSTEM_CALL = 2 };

struct postern_request {
	unsigned size; /* bytes, with the texts behind this structure */
	int kind;      /* POSTERN_SERVICE or POSTERN_SYSTEM_CALL */
	long number;   /* which of the caller's imports, or Linux's number */

	/* The arguments as bits: those that are no floats, then the floats, each in their order. */
	unsigned long integers[6];
	double floats[8]; /* a float's 32 bits are the low half */
	unsigned integer_count, float_count;

	/* Texts, as distances from the beginning of this structure; `postern_text` makes pointers of
	 * them. */
	unsigned domain;             /* the caller's name */
	unsigned name;               /* the service's, or the system call's if it is known */
	unsigned path, second_path;  /* of a system call; 0: none. They are what is done if the answer is POSTERN_ALLOW */

	/* For the module to fill in. */
	long value;           /* POSTERN_EMULATE: the result; the bits of one that is a float */
	const void *bytes;    /* POSTERN_EMULATE of a system call: what goes into the caller's buffer … */
	unsigned long length; /* … and how much of it */
	const char *reason;   /* POSTERN_KILL: text, or NULL */

	unsigned long room; /* bytes that the caller's buffer takes */
};

/* A text of the request, or NULL for one that it does not have. */
static inline const char *postern_text(const struct postern_request *request, unsigned distance)
{
	return distance ? (const char *)request + distance : (const char *)0;
}

/* An extension that wants to be asked before a grant is taken from it exports
 *
 *     int __postern_revoke(const char *name, int kind, unsigned long microseconds);
 *
 * which gives back what is named, in the time that it has, and returns 0; any other value is a
 * refusal, and then it is taken. It is called while other threads may be inside. Nothing is lost
 * before it has returned, or its time is over. */
enum {
	POSTERN_GRANT_SERVICE = 1,   /* `name` is the service's */
	POSTERN_GRANT_DIRECTORY = 2, /* `name` is the path */
	POSTERN_GRANT_DESCRIPTOR = 3, /* `name` is the number, in decimal */
	POSTERN_GRANT_AREA = 4        /* `name` is the offset, in hexadecimal with 0x */
};

/* The repossession list: what was taken by force since the last reset, counted from 0. Returns the
 * kind of that entry, and its name in the buffer, cut to fit; 0 behind the list's end, -1 if the
 * buffer cannot be written. Every domain is granted it. */
#include <postern/extension.h>
POSTERN_IMPORT long __postern_repossessed(unsigned index, char *name, unsigned long room);

#endif
