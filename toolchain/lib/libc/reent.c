/* The library's state of a thread: the first thread to ask has the static one, each other one its
 * own. A data stack that another thread of the host takes over is found with the state of the one
 * before, which is as good as any. */
#include <errno.h>
#include <reent.h>
#include <stdlib.h>

#include "thread.h"

static char taken;

struct _reent *__getreent(void)
{
    struct __postern_thread *thread = this_thread();
    if (!thread->reent) {
        struct _reent *reent = _impure_ptr;
        if (__atomic_test_and_set(&taken, __ATOMIC_RELAXED)) {
            reent = malloc(sizeof *reent);
            if (!reent)
                return _impure_ptr;
            _REENT_INIT_PTR(reent);
        }
        thread->reent = reent;
    }
    return thread->reent;
}
