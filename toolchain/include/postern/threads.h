/* postern/threads.h: functions that a thread of the domain's pool calls, if the host grants some
 * (`DomainBuilder::sandbox_threads`, in C `pt_options_sandbox_threads`).
 *
 * Handlers that interrupt threads may spawn, too. What a handler has done until then, the function
 * finds; which thread calls it, and in which order, nobody says. */
#ifndef POSTERN_THREADS_H
#define POSTERN_THREADS_H

#include <postern/extension.h>

/* Has the function called with the argument, once a thread is free: 0, -EAGAIN if as many wait as
 * may, -ENOSYS if there are no such threads, -EINVAL if no call can begin there. */
POSTERN_IMPORT int __postern_spawn(void (*function)(void *), void *argument);
#define postern_spawn(function, argument) __postern_spawn(function, argument)

#endif
