/* postern/packet.h: for extensions that judge packets (`postern filter --program`) and for those
 * that handle the packets which a filter accepts (`--handler`, and consumers of `postern demux`).
 *
 * A packet begins with its link header and lies in the window, read-only, as long as the call
 * lasts: where the kernel or the file has it. `length` bytes of it are there; it had `wire_length`
 on the wire. */
#ifndef POSTERN_PACKET_H
#define POSTERN_PACKET_H

#include <postern/extension.h>

/* To be defined by a filter: whether the packet is accepted. */
POSTERN_EXPORT int filter(const unsigned char *packet, unsigned length, unsigned wire_length);

/* To be defined by a handler: 0 leaves the packet to whoever comes after, anything else takes
 * it. */
POSTERN_EXPORT int handle(const unsigned char *packet, unsigned length, unsigned wire_length);

/* For handlers. Answers with a frame, which begins with its link header: it is copied now and sent
 * when the call has returned without a fault, by the interface that the packet came from, or to the
 * output file. 0, or -1 if the frame is too long or not all the extension's to read, or if this
 * call has 64 answers already. */
POSTERN_IMPORT int packet_send(const void *frame, unsigned length);

/* For handlers. The memory that the host shares with this handler and to which packets' contents
 * can be moved; it stays as it is from call to call. Its size goes to `*size`. Null if the host
 * gave none. */
POSTERN_IMPORT void *packet_area(unsigned *size);

#endif
