/* postern/extension.h: what an extension may say to `postern cc`, and the calls that every host grants.
 *
 * Nothing here is needed for an ordinary extension: every function with external linkage and default visibility is
 * exported, and every function that is declared, called and not defined is imported from the host by its name.
 */
#ifndef POSTERN_EXTENSION_H
#define POSTERN_EXTENSION_H

#ifdef __cplusplus
#define POSTERN_C extern "C"
#else
#define POSTERN_C extern
#endif

/* A function that the host calls. Needed only with -fvisibility=hidden, or in C++ for a name that is not mangled:
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
 * It is the host's even where the C library has a function of that name (`-fpostern-import=NAME` says so without a header).
 */
#define POSTERN_IMPORT POSTERN_C __attribute__((visibility("protected")))

/* Ends the call of the host at once; the status is the call's value. */
POSTERN_IMPORT void __postern_exit(int status) __attribute__((noreturn));

/* Ends the call of the host with a fault whose reason is the text. */
POSTERN_IMPORT void __postern_abort(const char *reason) __attribute__((noreturn));

#endif
