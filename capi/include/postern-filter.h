/* Postern's packets: filters in the language of tcpdump, compiled to confined machine code, sets of
 * them, where packets come from and where they go.
 *
 *     pt_source *source = pt_source_file("all.pcap");            or pt_source_live("eth0", 0, 0, 0)
 *     pt_filter *dns = pt_filter_new("udp port 53", NULL);
 *     pt_writer *writer = pt_writer_new("dns.pcap", 0, NULL);
 *     pt_packet packet;
 *     int got;
 *     pt_source_watch(source, pt_filter_domain(dns));            the filter sees the packets where they lie
 *     while ((got = pt_source_next(source, &packet)) >= 0)
 *         if (got && pt_filter_run_at(dns, packet.at, packet.length, packet.wire_length) > 0)
 *             pt_writer_copy(writer, source, &packet);
 *     if (got != PT_E_END) puts(pt_error_message());
 *     if (pt_writer_free(writer) < 0) puts(pt_error_message());
 *
 * Errors and handles are as <postern.h> says. Every function may be called from every thread; where
 * two threads use one source, writer, handler or demultiplexer at a time, one waits for the other.
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
typedef struct pt_source pt_source;         /* where packets come from: a file, a pipe, an interface */
typedef struct pt_writer pt_writer;         /* a capture file in the making */
typedef struct pt_handler pt_handler;       /* an extension that runs on packets, and may answer them */
typedef struct pt_demux pt_demux;           /* spreads packets over consumers */

/* ---- Filters --------------------------------------------------------------------------------- */

/* Compiles an expression of pcap-filter(7), for Ethernet; names are those of the files in /etc.
 * NULL with PT_E_SOURCE if it is wrong: pt_error_message() shows the place with a mark and what to
 * write instead, and *at (unless `at` is NULL) is the byte of the source. */
PT_API pt_filter *pt_filter_new(const char *expression, uint64_t *at);
/* The same with the netmask of the network, such as "255.255.255.0", for `ip broadcast`, or NULL;
 * and with how many bytes an accepting filter returns, 0 for 262144. */
PT_API pt_filter *pt_filter_new_with(const char *expression, const char *netmask, uint32_t snaplen, uint64_t *at);
/* The same for packets that begin with something else: `link` is PT_LINK_…, as of pt_source_link. A
 * packet of another link would be read wrongly. */
PT_API pt_filter *pt_filter_new_for(const char *expression, int link, const char *netmask, uint32_t snaplen,
                                    uint64_t *at);
/* The same of a program for the BSD packet filter, as `tcpdump -ddd` prints it; *at is the line. */
PT_API pt_filter *pt_filter_classic(const char *program, uint64_t *at);
PT_API int pt_filter_free(pt_filter *filter);
/* How many bytes of a packet are accepted, 0 if it is rejected, or a negative error. `length` bytes
 * of it are there, it had `wire_length`. The packet is copied into the filter's domain; calls of
 * several threads wait for each other. */
PT_API int64_t pt_filter_run(pt_filter *filter, const void *packet, size_t length, uint32_t wire_length);
/* The same for a packet in an area that the filter's domain sees (pt_domain_expose): nothing is
 * copied, and nobody waits. */
PT_API int64_t pt_filter_run_at(pt_filter *filter, pt_offset packet, uint32_t length, uint32_t wire_length);
/* The domain that runs it, which goes with the filter. */
PT_API pt_domain *pt_filter_domain(pt_filter *filter);
/* The filter's tests as text: as much as fits `size` bytes with a NUL. The length of the whole
 * text. */
PT_API int64_t pt_filter_show(pt_filter *filter, char *text, size_t size);

/* ---- Where packets come from ----------------------------------------------------------------- */

enum {
    PT_LIVE_NOT_PROMISCUOUS = 1, /* only packets that the interface takes anyway */
    PT_LIVE_IN = 2,              /* only packets that come in */
    PT_LIVE_OUT = 4,             /* only packets that go out */
    PT_LIVE_IMMEDIATE = 8        /* each packet as soon as it comes, for those who answer; else within 20 ms */
};

enum {
    PT_DIRECTION_UNKNOWN = 0,
    PT_DIRECTION_IN = 1,        /* to this machine */
    PT_DIRECTION_OUT = 2,       /* from it */
    PT_DIRECTION_BROADCAST = 3, /* to all */
    PT_DIRECTION_MULTICAST = 4, /* to a group */
    PT_DIRECTION_OTHER = 5      /* to another machine */
};

/* What packets begin with. */
enum {
    PT_LINK_ETHERNET = 0,
    PT_LINK_RAW = 1,      /* nothing: IPv4 or IPv6, as of tun and wg */
    PT_LINK_NULL = 2,     /* the loopback of BSD systems */
    PT_LINK_LOOP = 3,     /* that of OpenBSD */
    PT_LINK_SLL = 4,      /* Linux' header for several interfaces */
    PT_LINK_SLL2 = 5,     /* the newer one */
    PT_LINK_PPP = 6,
    PT_LINK_HDLC = 7,     /* Cisco's */
    PT_LINK_WIRELESS = 8, /* IEEE 802.11 */
    PT_LINK_RADIOTAP = 9  /* the same behind what the receiver says of it */
};

/* A packet of a source. It is there until the next one is asked for. */
typedef struct pt_packet {
    uint64_t time;        /* when it was captured, in nanoseconds since 1970 */
    pt_offset at;         /* its first byte in the windows of domains that watch the source */
    uint32_t length;      /* bytes that are there */
    uint32_t wire_length; /* bytes that it had */
    uint32_t interface;   /* number of the interface that it passed: the kernel's, or its place in the file */
    uint32_t direction;   /* PT_DIRECTION_… */
    uint32_t link;        /* what it begins with, PT_LINK_… */
    uint32_t reserved[8]; /* 0 */
} pt_packet;

/* The packets of a capture file, pcap or pcapng, which is mapped and not copied; of a named pipe or
 * the like as they arrive. */
PT_API pt_source *pt_source_file(const char *path);
/* The packets of a capture that arrives by a descriptor, such as 0. It is duplicated, so it may be
 * closed then. */
PT_API pt_source *pt_source_fd(int fd);
/* The packets of an interface from now on; of "any", of all interfaces whose packets filters know.
 * `flags` is PT_LIVE_… Of a packet `snaplen` bytes are kept, and the ring has `ring` bytes, at
 * least 2 MiB: 0 are 256 KiB and 16 MiB. It needs CAP_NET_RAW. */
PT_API pt_source *pt_source_live(const char *interface, int flags, uint32_t snaplen, size_t ring);
/* The names of the interfaces that can be captured, a line each: as much as fits `size` bytes with
 * a NUL. The length of the whole text. */
PT_API int64_t pt_interfaces(char *text, size_t size);
PT_API int pt_source_free(pt_source *source);
/* What its packets begin with, PT_LINK_…: of a pcap file and of an interface all, of a pcapng file
 * those of its first interface, of "any" most. Each packet says it itself (`link`); one of a link for
 * which there is no filter is to be left out. */
PT_API int pt_source_link(pt_source *source);
/* Maps the source's packets into a domain's window, read-only, now and later. */
PT_API int pt_source_watch(pt_source *source, pt_domain *domain);
/* The next packet; the one before is not to be touched any more. 1 if there is one; 0 if none came
 * for a while (of an interface: a tenth of a second), ask again; PT_E_END (without a message) if
 * there are no more; or another negative error: the file is damaged here, and what was readable was
 * given. */
PT_API int pt_source_next(pt_source *source, pt_packet *packet);
/* Copies a packet's bytes, at most `size`. How many. */
PT_API int64_t pt_source_read(pt_source *source, const pt_packet *packet, void *buffer, size_t size);
/* What the interface that a packet passed is called, "" where a file does not say: as much as fits
 * `size` bytes with a NUL. The length of the whole name. */
PT_API int64_t pt_source_interface(pt_source *source, const pt_packet *packet, char *name, size_t size);
/* Sends a whole frame, link header first, by the interface that `packet` came from, or if that is
 * NULL by the interface of the source, which "any" has not. The source does not see it. PT_E_BUSY
 * if the queue is full. It waits for nobody. */
PT_API int pt_source_send(pt_source *source, const pt_packet *packet, const void *frame, size_t length);
/* Packets that it gave, and those for which the kernel found no room in the ring. Both pointers may
 * be NULL. */
PT_API int pt_source_counters(pt_source *source, uint64_t *received, uint64_t *dropped);
/* 1 and the bytes that were read so far and in all if the source is a file, else 0. Both pointers
 * may be NULL. */
PT_API int pt_source_progress(pt_source *source, uint64_t *at, uint64_t *size);

/* ---- Sets of filters ------------------------------------------------------------------------- */

/* An empty set. A packet is for the filter with the highest priority that accepts it, of equal ones
 * for the oldest. */
PT_API pt_filter_set *pt_filter_set_new(void);
PT_API int pt_filter_set_free(pt_filter_set *set);
/* Adds a filter, which may be freed then, and makes the set's code anew where that is needed, so no
 * packet waits for it. Its number, from 0 on, or a negative
 * error: PT_E_REFUSED if it could take packets from a filter of another owner with a lower priority
 * and `may_steal` is 0. */
PT_API int64_t pt_filter_set_add(pt_filter_set *set, pt_filter *filter, uint32_t owner, uint32_t priority, int may_steal);
/* Takes a filter out by its number. */
PT_API int pt_filter_set_remove(pt_filter_set *set, uint32_t number);
/* Puts another filter in the place of one, which keeps its number and its age: no packet finds
 * neither. PT_E_MISSING if there is none of that number; else as pt_filter_set_add, and after an
 * error the set is as before. */
PT_API int pt_filter_set_replace(pt_filter_set *set, uint32_t number, pt_filter *filter, uint32_t owner, uint32_t priority, int may_steal);
/* With `hold` 1 changes make no code, with 0 they do, and what was changed meanwhile is made code
 * at once: for many filters of different kinds. Packets that come in between wait for code. */
PT_API int pt_filter_set_hold(pt_filter_set *set, int hold);
/* Who gets a packet: the filter's number, PT_E_MISSING (without a message) if nobody, or another
 * negative error. */
PT_API int64_t pt_filter_set_find(pt_filter_set *set, const void *packet, size_t length, uint32_t wire_length);
/* The same for a packet in an area that was lent to the set, or of a source that it watches:
 * nothing is copied. */
PT_API int64_t pt_filter_set_find_at(pt_filter_set *set, pt_offset packet, uint32_t length, uint32_t wire_length);
/* The same for several packets, of which only the place and the lengths count, with one call for
 * many. `numbers` has room for as many: who gets each, or PT_E_MISSING. */
PT_API int pt_filter_set_find_all(pt_filter_set *set, const pt_packet *packets, size_t count, int64_t *numbers);
/* All filters that accept a packet, the one that gets it first: as many of their numbers as there
 * is room for. How many there are. */
PT_API int64_t pt_filter_set_matches(pt_filter_set *set, const void *packet, size_t length, uint32_t wire_length, uint32_t *numbers, size_t room);
/* Lets the set see an area, now and when its code is made anew. The area's offset, or 0. */
PT_API pt_offset pt_filter_set_lend(pt_filter_set *set, pt_shared *area);
/* The same with a source, which the set keeps. */
PT_API int pt_filter_set_watch(pt_filter_set *set, pt_source *source);
/* The domain of its code, as it is now; closed when the code is made anew, as for a filter of a new
 * shape, or the set is freed. */
PT_API pt_domain *pt_filter_set_domain(pt_filter_set *set);
/* The decision program as text: as much as fits `size` bytes with a NUL. The length of the whole
 * text. */
PT_API int64_t pt_filter_set_show(pt_filter_set *set, char *text, size_t size);
/* How many filters there are, and how often code was made. Both pointers may be NULL. */
PT_API int pt_filter_set_counters(pt_filter_set *set, uint64_t *filters, uint64_t *compilations);

/* ---- Capture files in the making ------------------------------------------------------------- */

enum {
    PT_FORMAT_BY_NAME = 0, /* pcapng if the path ends so (or in .ntar), else pcap */
    PT_FORMAT_PCAP = 1,
    PT_FORMAT_PCAPNG = 2,
    PT_FORMAT_PCAP_MICRO = 3 /* pcap with times in microseconds, for old programs */
};

/* Begins a capture file; an old one of the name is replaced. `format` is PT_FORMAT_…, `interface`
 * what pcapng calls the interface of packets for which nobody says it, or NULL. Times are in
 * nanoseconds unless `format` says something else. */
PT_API pt_writer *pt_writer_new(const char *path, int format, const char *interface);
/* The same by a descriptor, which is duplicated; pcap by default. */
PT_API pt_writer *pt_writer_fd(int fd, int format, const char *interface);
/* By which interface the packets that pt_writer_packet adds from now on came or went, and how
 * (PT_DIRECTION_…). pcap does not keep it. */
PT_API int pt_writer_origin(pt_writer *writer, const char *interface, uint32_t direction);
/* What the packets that pt_writer_packet adds from now on begin with, PT_LINK_…; without it Ethernet's
 * header. A pcap file has packets of one link, that of the first: others are PT_E_FILE. */
PT_API int pt_writer_link(pt_writer *writer, int link);
/* Adds a packet of which `length` bytes are there and that had `wire_length`. */
PT_API int pt_writer_packet(pt_writer *writer, uint64_t time, const void *packet, size_t length, uint32_t wire_length);
/* Adds a packet of a source, with its interface and its link. */
PT_API int pt_writer_copy(pt_writer *writer, pt_source *source, const pt_packet *packet);
/* Hands over what is not written yet. */
PT_API int pt_writer_flush(pt_writer *writer);
/* The same, and gives the handle back, whatever comes of it. */
PT_API int pt_writer_free(pt_writer *writer);

/* ---- Handlers: extensions that run on packets ------------------------------------------------ */

/* An extension that exports `int handle(const unsigned char *packet, unsigned length, unsigned
 * wire_length)`, and may import what <postern/packet.h> has. `name`, or NULL, is what faults call
 * it; `area`, or NULL, is memory to which it may move what is in packets. After a fault it begins
 * anew. */
PT_API pt_handler *pt_handler_new(pt_image *image, const char *name, pt_shared *area);
PT_API int pt_handler_free(pt_handler *handler);
/* The domain that runs it, which goes with the handler: for pt_source_watch. */
PT_API pt_domain *pt_handler_domain(pt_handler *handler);
/* Runs it on a packet of a source that its domain watches: 1 if it takes the packet, 0 if it leaves
 * it to others, or a negative error: with PT_E_FAULT, pt_fault_last() says what happened. */
PT_API int pt_handler_run(pt_handler *handler, const pt_packet *packet);
/* A frame that the last run answered with, by its number from 0 on, and its length: for
 * pt_source_send. Valid until the next run. NULL, without an error, if there are no more; there are
 * none after a fault. `length` may be NULL. */
PT_API const void *pt_handler_answer(pt_handler *handler, size_t index, size_t *length);
/* Runs so far, and those that ended in an error. Both pointers may be NULL. */
PT_API int pt_handler_counters(pt_handler *handler, uint64_t *calls, uint64_t *faults);

/* ---- One stream for many consumers ----------------------------------------------------------- */

enum {
    PT_DEMUX_ALL = 1 /* a packet is for all who want it, not only for the first */
};

/* What was counted of a consumer. */
typedef struct pt_tally {
    const char *name;     /* valid until the demultiplexer is freed */
    uint64_t packets;     /* that it was given */
    uint64_t bytes;       /* of them */
    uint64_t dropped;     /* packets that a socket did not take */
    uint64_t answers;     /* frames that a handler answered with and that were sent */
    uint64_t faults;      /* of a handler */
    uint64_t reserved[2]; /* 0 */
} pt_tally;

/* Consumers of a source by a file of rules (TOML, as of `postern demux`): opens their files and
 * sockets and loads their handlers, which have to be compiled (.px). `flags` is PT_DEMUX_… It keeps
 * the source, whose handle may be freed. Filters are for what pt_source_link says; packets of
 * another link are for nobody. */
PT_API pt_demux *pt_demux_new(pt_source *source, const char *rules, int flags);
/* The same by words NAME=EXPRESSION, the most important one first: a capture file, unix:SOCKET, or
 * a .px. */
PT_API pt_demux *pt_demux_to(pt_source *source, const char *const *consumers, size_t count, int flags);
/* `handler` is called with every fault of a consumer, whose name is fault->domain, before
 * pt_demux_packet returns. It must return. NULL for none. */
PT_API int pt_demux_on_fault(pt_demux *demux, void (*handler)(const pt_fault *fault, void *user), void *user);
/* Gives the source's packet to who wants it. Faults of handlers are no errors: they leave the
 * packet to the next consumer. */
PT_API int pt_demux_packet(pt_demux *demux, const pt_packet *packet);
/* When no packet comes: files are brought up to date, and sockets get what waits for them. */
PT_API int pt_demux_idle(pt_demux *demux);
/* The end: the same, and sockets have two seconds to take what waits for them. */
PT_API int pt_demux_finish(pt_demux *demux);
/* Gives the handle back, after pt_demux_finish if that has not been called; its error is this
 * one's. */
PT_API int pt_demux_free(pt_demux *demux);
/* What was counted of a consumer, by its number from 0 on, in the order of the rules: 1, or 0 if
 * there is none of that number. */
PT_API int pt_demux_tally(pt_demux *demux, size_t index, pt_tally *tally);
/* Packets that nobody wanted or took. */
PT_API int pt_demux_unclaimed(pt_demux *demux, uint64_t *packets);
/* The decision program of all filters as text: as much as fits `size` bytes with a NUL. The length
 * of the whole text. */
PT_API int64_t pt_demux_show(pt_demux *demux, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
