/* Postern's packets: filters in the language of tcpdump, compiled to confined machine code, and sets of them.
 *
 *     pt_filter *dns = pt_filter_new("udp port 53", NULL);
 *     if (pt_filter_run(dns, packet, length, length) > 0) puts("wanted");
 *
 * Errors, threads and handles are as <postern.h> says.
 *
 * Licence: Apache-2.0. */
#ifndef POSTERN_FILTER_H
#define POSTERN_FILTER_H

#include <postern.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pt_filter pt_filter;         /* a filter of packets, as confined machine code */
typedef struct pt_filter_set pt_filter_set; /* filters that are asked together */

/* ---- Filters ----------------------------------------------------------------------------------------------------- */

/* Compiles an expression of pcap-filter(7), for Ethernet; names are those of the files in /etc. NULL with PT_E_SOURCE if it is wrong:
 * pt_error() shows the place with a mark and what to write instead, and *at (unless `at` is NULL) is the byte of the source. */
pt_filter *pt_filter_new(const char *expression, uint64_t *at);
/* The same of a program for the BSD packet filter, as `tcpdump -ddd` prints it; *at is the line. */
pt_filter *pt_filter_classic(const char *program, uint64_t *at);
int pt_filter_free(pt_filter *filter);
/* How many bytes of a packet are accepted, 0 if it is rejected, or a negative error. `length` bytes of it are there, it had
 * `wire_length`. The packet is copied into the filter's domain; calls of several threads wait for each other. */
int64_t pt_filter_run(pt_filter *filter, const void *packet, size_t length, uint32_t wire_length);
/* The same for a packet in an area that the filter's domain sees (pt_expose): nothing is copied, and nobody waits. */
int64_t pt_filter_run_at(pt_filter *filter, pt_offset packet, uint32_t length, uint32_t wire_length);
/* The domain that runs it, which goes with the filter. */
pt_domain *pt_filter_domain(pt_filter *filter);
/* The filter's tests as text: as much as fits `size` bytes with a NUL. The length of the whole text. */
int64_t pt_filter_show(pt_filter *filter, char *text, size_t size);

/* ---- Sets of filters --------------------------------------------------------------------------------------------- */

/* An empty set. A packet is for the filter with the highest priority that accepts it, of equal ones for the oldest. */
pt_filter_set *pt_filter_set_new(void);
int pt_filter_set_free(pt_filter_set *set);
/* Adds a filter, which may be freed then. Its number, from 0 on, or a negative error: PT_E_REFUSED if it could take packets from a filter
 * of another owner with a lower priority and `may_steal` is 0. */
int64_t pt_filter_set_add(pt_filter_set *set, pt_filter *filter, uint32_t owner, uint32_t priority, int may_steal);
/* Takes a filter out by its number. */
int pt_filter_set_remove(pt_filter_set *set, uint32_t number);
/* Who gets a packet: the filter's number, PT_E_MISSING (without a message) if nobody, or another negative error. */
int64_t pt_filter_set_find(pt_filter_set *set, const void *packet, size_t length, uint32_t wire_length);

#ifdef __cplusplus
}
#endif
#endif
