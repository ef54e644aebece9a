/* postern/kernel.h: for extensions of the kernel (`postern cc --kernel`): what hooks call, and the
 * services of the module that they may import.
 *
 * A service that needs a right is granted to extensions that are loaded with it; an image that
 * imports what it may not have is refused. Memory that a service is given must be the extension's
 * own, all of it; else, and where sizes are not what is told here, the call ends there
 * (`bad argument`). Services that return int say 1 if they have done it and 0 if not. */
#ifndef POSTERN_KERNEL_H
#define POSTERN_KERNEL_H

#include <postern/extension.h>
#include <stddef.h>
#include <stdint.h>

/* Functions of hooks: yours have these types, and names of your own.
 *
 * Packets, from the network header on, of which `captured` bytes of `length` are at `packet`: a copy,
 * the services below reach the packet itself. 0 drops it, anything else lets it pass. */
typedef long postern_packet_hook(const unsigned char *packet, size_t captured, size_t length, long hook);
/* A tracepoint's arguments or those of a function, as it has them; what is behind them is undefined.
 * Values other than 0 are counted. No loops, for interrupts may be off. */
typedef long postern_probe_hook(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);
/* A timer, with the time that postern_time tells: 0 stops it. */
typedef long postern_timer_hook(uint64_t nanoseconds);

/* Values of `hook`. */
enum postern_packet_hooks {
	POSTERN_PREROUTING = 0,
	POSTERN_INPUT = 1,
	POSTERN_FORWARD = 2,
	POSTERN_OUTPUT = 3,
	POSTERN_POSTROUTING = 4
};

/* Nanoseconds since the machine started, without those that it slept. */
POSTERN_IMPORT uint64_t postern_time(void);

/* The number of the processor that the call is on, to its end. */
POSTERN_IMPORT unsigned postern_processor(void);

/* Moves the end of this window's heap by so many bytes, and returns where it was, or null if there is
 * no room. The extension is loaded with the heap's size; each window has a heap of its own. */
POSTERN_IMPORT void *postern_heap(long more);

/* Right `see-packets`. Bytes of the packet that the hook is about, from the network header on; 0 where
 * there is none. */
POSTERN_IMPORT size_t postern_packet_length(void);

/* Right `see-packets`. Copies `size` bytes (at most 4096) of the packet. */
POSTERN_IMPORT int postern_packet_read(size_t offset, void *to, size_t size);

/* Rights `see-packets` and `change-packets`. Changes `size` bytes (at most 4096) of the packet. The
 * checksums of IPv4, TCP, UDP and ICMP are kept right, whatever `from` has in their place. Version,
 * lengths, options, protocol and fragments of the network header and lengths of the transport's stay
 * as they are: what would change them is not done. */
POSTERN_IMPORT int postern_packet_write(size_t offset, const void *from, size_t size);

/* Maps, by their numbers; a process makes them. Sizes have to be the map's. Where there is no such map
 * nothing is found and nothing is set. */
POSTERN_IMPORT int postern_map_find(unsigned map, const void *key, size_t key_size, void *value,
				    size_t value_size);
/* Also 0 if the map is full. */
POSTERN_IMPORT int postern_map_set(unsigned map, const void *key, size_t key_size, const void *value,
				   size_t value_size);
POSTERN_IMPORT int postern_map_remove(unsigned map, const void *key, size_t key_size);

/* Writes an entry (at most 4096 bytes) to the ring, which a process reads; 0 if there is no room. */
POSTERN_IMPORT int postern_ring_write(const void *bytes, size_t size);

/* Has a function of this extension called later, with these arguments, outside of interrupts. `name`
 * is its name, of `size` bytes (at most 63). 0 if too many wait. */
POSTERN_IMPORT int postern_request(const char *name, size_t size, uint64_t a, uint64_t b, uint64_t c);

/* Right `log`. A line of the kernel's log, of which 160 bytes are shown, ten lines a second. */
POSTERN_IMPORT int postern_log(const char *text, size_t size);

/* Right `observe`. Copies `size` bytes (at most 4096) of the kernel's memory; 0 if they are not there. */
POSTERN_IMPORT int postern_kernel_read(uint64_t address, void *to, size_t size);

/* Right `observe`. The processor's registers where the kprobe is; 0 in other hooks. */
struct postern_registers {
	uint64_t ax, bx, cx, dx, si, di, bp, sp, r8, r9, r10, r11, r12, r13, r14, r15, ip, flags;
};
POSTERN_IMPORT int postern_registers(struct postern_registers *to);

#endif
