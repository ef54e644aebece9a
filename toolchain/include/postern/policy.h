/* postern/policy.h: for extensions that decide about the calls of other extensions, and for those that give back what the host
 * asks for.
 *
 * A policy module exports
 *
 *     long decide(struct postern_request *request);
 *
 * which is asked before a domain's call of a service or of the system is made. The request is the module's own copy, on its own data
 * stack; it may be written.
 */
#ifndef POSTERN_POLICY_H
#define POSTERN_POLICY_H

/* What `decide` returns. Everything else, and every call of `decide` that does not return, is a denial that the host counts. */
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

	/* Texts, as distances from the beginning of this structure; `postern_text` makes pointers of them. */
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

#endif
