/* postern/upcall.h: for handlers of events, `void name(uint32_t event, uint64_t data)`: what they
 * may do for the threads that the host has attached, the domain's clients. Any other call of the
 * domain may do it, too. Each client has a number: below 64; in a domain that processes have in
 * common below 4096, and no other process's client has it. */
#ifndef POSTERN_UPCALL_H
#define POSTERN_UPCALL_H

#include <postern/extension.h>

/* The client whose thread this is; a negated errno: ENOENT, the thread is none. */
POSTERN_IMPORT int __postern_upcall_client(void);
#define postern_client() __postern_upcall_client()

/* Wakes a client, now or when it next waits. 0, or a negated errno: ESRCH, there is none. */
POSTERN_IMPORT int __postern_upcall_wake(unsigned client);
#define postern_client_wake(client) __postern_upcall_wake(client)

/* Has the handler of the event with this number called on the thread of a client of this process.
 * 0; 1: the same event waited there already, and has the later data now; or a negated errno: ESRCH,
 * there is no such client; ENOENT, no such event; ENOBUFS, sixteen others wait. */
POSTERN_IMPORT int __postern_upcall_send(unsigned client, unsigned event, unsigned long data);
#define postern_client_send(client, event, data) __postern_upcall_send(client, event, data)

/* Sets the nice value of a client of this process, -20 to 19. 0, or a negated errno: EPERM, the host does not grant it;
 * EACCES, the kernel does not; ESRCH, there is no such client. */
POSTERN_IMPORT int __postern_upcall_nice(unsigned client, int nice);
#define postern_client_nice(client, nice) __postern_upcall_nice(client, nice)

/* Fills a page of an area of whose missing pages the domain is told, by its offset, with the 4096
 * bytes at `source`. Not in place of an interrupted thread. 0, or a negated errno: EINVAL, there is
 * no such page; EEXIST, it is there already; EFAULT, so much cannot be read, or is missing itself. */
POSTERN_IMPORT int __postern_page_fill(unsigned page, unsigned source);
#define postern_page_fill(page, source) __postern_page_fill((unsigned)(page), (unsigned)(unsigned long)(source))

#endif
