/* Events that call handlers of domains: `void name(uint32_t event, uint64_t data)`. It is a part of
 * <postern.h>, which includes it. What a handler may do for attached threads is in
 * <postern/upcall.h>, for extensions.
 *
 * Licence: Apache-2.0. */
#ifndef POSTERN_EVENTS_H
#define POSTERN_EVENTS_H

#include <postern.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Events ---------------------------------------------------------------------------------- */

typedef struct pt_subscription pt_subscription; /* an event that is waited for */

/* Who calls a handler; the better ones come first. */
enum {
    PT_WAY_BEST = 0,      /* the best of these that the kernel allows: the default */
    PT_WAY_CURRENT = 1,   /* the thread that runs when the event happens, if it is attached */
    PT_WAY_REAL_TIME = 2, /* a thread that waits for events, with a real-time priority */
    PT_WAY_PLAIN = 3      /* the same without */
};

/* Which way events of domains with these options go: PT_WAY_…, of which one that is named must be
 * possible. The thread that waits gets this real-time priority, 1 to 99; 0: 50. */
PT_API int pt_options_way(pt_options *options, int way, int priority);
/* The way that the domain's events go, or would go: PT_WAY_…, with as much as fits of a sentence
 * that says it, and why no better one is possible. `text` may be NULL if size is 0. */
PT_API int pt_domain_way(pt_domain *domain, char *text, size_t size);

/* Each of these has the export `handler` called for an event, until pt_subscription_free. NULL:
 * PT_E_MISSING, PT_E_SIGNATURE, there is no such handler; PT_E_LIMIT, 64 events wait; PT_E_SYSTEM,
 * the kernel refuses; PT_E_ARGUMENT, there is no such event; PT_E_CLOSED, the events are those of
 * the process that forked. The handler's first argument is the subscription's number. */

/* After so many nanoseconds, then every `period` (0: never again). Data: how often it ran out. */
PT_API pt_subscription *pt_domain_on_timer(pt_domain *domain, uint64_t first, uint64_t period, const char *handler);
enum { PT_READABLE = 1, PT_WRITABLE = 2 };
/* A descriptor becomes readable or writable, or its other side goes; told once for what comes. A
 * copy of it is kept. Data: EPOLLIN, EPOLLOUT, EPOLLHUP and so on. */
PT_API pt_subscription *pt_domain_on_fd(pt_domain *domain, int fd, int what, const char *handler);
/* A process ends, which stays for who waits for it. Data: status or signal; in the upper half
 * CLD_EXITED, CLD_KILLED, CLD_DUMPED, or 0 if that cannot be known. */
PT_API pt_subscription *pt_domain_on_end(pt_domain *domain, uint32_t process, const char *handler);
/* A signal that all threads block. Data: its number; in the upper half sigqueue's value. */
PT_API pt_subscription *pt_domain_on_signal(pt_domain *domain, int signal, const char *handler);
/* Somebody writes a number to the descriptor of pt_subscription_doorbell. Data: their sum. */
PT_API pt_subscription *pt_domain_on_doorbell(pt_domain *domain, const char *handler);
/* Some thread waited for memory for `stall` microseconds within `window`: of the machine (`file` is
 * NULL), or of the control group whose memory.pressure it is. Data: EPOLLPRI. */
PT_API pt_subscription *pt_domain_on_pressure(pt_domain *domain, const char *file, uint64_t stall, uint64_t window, const char *handler);
/* A thread touches a page of the area that is not there, in the host or in any domain, and sleeps
 * until the handler has returned, which fills it by postern_page_fill; else it has zeros. Data: the
 * page's offset. PT_E_BUSY: an event watches the area; PT_E_ARGUMENT: its pages cannot be watched. */
PT_API pt_subscription *pt_domain_on_missing_pages(pt_domain *domain, pt_shared *area, const char *handler);
/* Nothing by itself: pt_thread_send and handlers send it to attached threads. */
PT_API pt_subscription *pt_domain_on_send(pt_domain *domain, const char *handler);

PT_API int pt_subscription_free(pt_subscription *subscription);
/* The handler's first argument, 0 to 63. */
PT_API int pt_subscription_number(pt_subscription *subscription);
/* Of several events that wait, those of the highest priority (0 to 255; 0) are handled first. */
PT_API int pt_subscription_priority(pt_subscription *subscription, int priority);
/* A new descriptor of the doorbell, an eventfd, to write 8 bytes to or to give to another
 * process. */
PT_API int pt_subscription_doorbell(pt_subscription *subscription);

/* What can be counted of an event. */
enum {
    PT_EVENT_BY_CURRENT,    /* handlers that returned in a thread that they had interrupted … */
    PT_EVENT_BY_DISPATCHER, /* … and in the thread that waits */
    PT_EVENT_COALESCED,     /* happened while an earlier one waited, and was told with it */
    PT_EVENT_DROPPED,       /* sent to a thread with no place for it; zeros for a pager's own touch */
    PT_EVENT_SKIPPED,       /* came when the domain let nobody in */
    PT_EVENT_FAULTS         /* handlers that were ended */
};
PT_API int64_t pt_subscription_count(pt_subscription *subscription, int what);

enum { PT_ATTACH_NICENESS = 1 /* handlers may change the thread's nice value */ };
/* Attaches the calling thread for all events of the domain, until pt_thread_detach or its end, and
 * returns the number by which handlers name it. A thread has one attachment at a time: PT_E_BUSY.
 * A thread detaches before it calls exec. */
PT_API int pt_thread_attach(pt_domain *domain, int flags);
PT_API int pt_thread_detach(void);
/* Sleeps until a handler wakes the calling thread, which is attached, or for so many microseconds.
 * How often it was woken since this was asked last. */
PT_API int pt_thread_wait(uint64_t microseconds);
/* Has the handler of the event with this number called on the calling thread. 0, 1 if the same
 * event waited and has the later data now; PT_E_LIMIT, sixteen others wait. */
PT_API int pt_thread_send(uint32_t event, uint64_t data);

#ifdef __cplusplus
}
#endif
#endif
