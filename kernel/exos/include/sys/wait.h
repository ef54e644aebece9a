/* Newlib's, and children that go on. */
#ifndef EXOS_SYS_WAIT_H
#define EXOS_SYS_WAIT_H

#include_next <sys/wait.h>

#define WCONTINUED 8
#define WIFCONTINUED(status) ((status) == 0xffff)

#endif
