/* postern/extension.h: what an extension may say to `postern cc`, and the calls that every host
 * grants.
 *
 * Nothing here is needed for an ordinary extension: every function with external linkage and
 * default visibility is exported, and every function that is declared, called and not defined is
 * imported from the host by its name. In a program (there is a main) such a function is an error,
 unless it is declared with POSTERN_IMPORT. */
#ifndef POSTERN_EXTENSION_H
#define POSTERN_EXTENSION_H

#ifdef __cplusplus
#define POSTERN_C extern "C"
#else
#define POSTERN_C extern
#endif

/* A function that the host calls. Needed only with -fvisibility=hidden, or in C++ for a name that
 * is not mangled:
 *
 *     POSTERN_EXPORT long add(int a, int b) { return (long)a + b; }
 */
#ifdef __cplusplus
#define POSTERN_EXPORT extern "C" __attribute__((visibility("default"), used))
#else
#define POSTERN_EXPORT __attribute__((visibility("default"), used))
#endif

/* A function of the host that the extension calls: a service. The domain's policy must grant it.
 *
 *     POSTERN_IMPORT void log_line(const char *text);
 *
 * It is the host's even where the C library has a function of that name (`-fpostern-import=NAME`
 says so without a header). */
#define POSTERN_IMPORT POSTERN_C __attribute__((visibility("protected")))

/* Ends the call of the host at once; the status is the call's value. */
POSTERN_IMPORT void __postern_exit(int status) __attribute__((noreturn));

/* A function that another extension serves is declared like any other import. When a call of it
 * fails it returns 0, and this says why; 0 is that the last one returned by itself. Ask before the
 * next call of a service or of a peer. */
POSTERN_IMPORT int __postern_peer_error(void);
#define postern_peer_error() __postern_peer_error()

enum postern_peer_error {
	POSTERN_PEER_FAULT = 1,       /* it faulted in this call */
	POSTERN_PEER_POISONED = 2,    /* a fault, earlier or in another thread, closed it */
	POSTERN_PEER_BUSY = 3,        /* it is being reset */
	POSTERN_PEER_CLOSED = 4,      /* it is closed for good */
	POSTERN_PEER_UNBOUND = 5,     /* the host has bound nothing to the import yet */
	POSTERN_PEER_TOO_DEEP = 6,    /* calls nest too deeply */
	POSTERN_PEER_NO_ROOM = 7,     /* it has no room for another thread, or for the call's stack */
	POSTERN_PEER_TIME = 8,        /* the call took too long */
	POSTERN_PEER_INTERRUPTED = 9, /* the host interrupted it */
	POSTERN_PEER_EXITED = 10,     /* it ended the call with a status */
	POSTERN_PEER_THREAD = 11,     /* the thread cannot enter extensions now */
	POSTERN_PEER_DENIED = 12      /* the caller's decider, or a revocation, does not allow the call */
};

/* Ends the call of the host with a fault whose reason is the text. */
POSTERN_IMPORT void __postern_abort(const char *reason) __attribute__((noreturn));

#endif
