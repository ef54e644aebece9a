/* The library's state of a thread. */
#include <errno.h>
#include <reent.h>

struct _reent *__getreent(void) { return _impure_ptr; }
