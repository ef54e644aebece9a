// SPDX-License-Identifier: GPL-2.0
/* Bytes of packets for extensions: read, and changed with the checksums kept right.
 *
 * A write is all or nothing. What the kernel has looked at before a hook and trusts afterwards stays
 * as it is: version, lengths, options and fragments of the network header, and where a transport
 * header ends; a write that would change them is refused, one that repeats them is not. Checksums of
 * IPv4, TCP, UDP and ICMP are the service's: what a write has in their place does not count. They
 * are changed by the difference that the write makes, so a wrong one stays wrong. */
#include <linux/icmpv6.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/checksum.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "kept.h"

/* Where things lie in a packet; all offsets are from the network header on. */
struct shape {
	u32 length;
	u32 transport; /* `length` if none is known */
	u32 addresses, addresses_end; /* that the transport's checksum covers */
	u32 sum; /* of the transport's checksum; 0 if there is none */
	bool may_be_absent; /* the checksum, if it is 0 */
	bool addresses_stay, transport_stays;
	u8 family; /* 4 or 6 */
	u8 protocol;
};

u32 postern_packet_length(const struct sk_buff *skb)
{
	return skb->len - skb_network_offset(skb);
}

bool postern_packet_read(const struct sk_buff *skb, u64 offset, void *to, u32 size)
{
	u32 length = postern_packet_length(skb);
	s64 from;

	if (offset > length || size > length - offset)
		return false;
	from = skb_network_offset(skb) + (s64)offset;
	/* Most of what is read lies in the first piece. */
	if (from >= 0 && from + size <= skb_headlen(skb)) {
		memcpy(to, skb->data + from, size);
		return true;
	}
	return skb_copy_bits(skb, from, to, size) == 0;
}

static void find_checksum(struct shape *shape)
{
	u32 at, size;

	switch (shape->protocol) {
	case IPPROTO_TCP:
		at = offsetof(struct tcphdr, check);
		size = sizeof(struct tcphdr);
		break;
	case IPPROTO_UDP:
		at = offsetof(struct udphdr, check);
		size = sizeof(struct udphdr);
		shape->may_be_absent = shape->family == 4;
		break;
	case IPPROTO_ICMP:
		shape->addresses_end = shape->addresses;
		fallthrough;
	case IPPROTO_ICMPV6:
		at = offsetof(struct icmp6hdr, icmp6_cksum);
		size = sizeof(struct icmp6hdr);
		break;
	default:
		return;
	}
	if (size <= shape->length - shape->transport)
		shape->sum = shape->transport + at;
	else
		shape->transport_stays = true;
}

static bool find_shape_4(const struct sk_buff *skb, struct shape *shape)
{
	struct iphdr header;

	if (!postern_packet_read(skb, 0, &header, sizeof(header)) || header.version != 4 ||
	    header.ihl < 5 || header.ihl * 4 > shape->length)
		return false;
	shape->family = 4;
	shape->protocol = header.protocol;
	shape->transport = header.ihl * 4;
	shape->addresses = offsetof(struct iphdr, saddr);
	shape->addresses_end = sizeof(header);
	/* A route of the sender's has the last address in an option. */
	shape->addresses_stay = header.ihl > 5;
	/* Of a later fragment the checksum is elsewhere. */
	shape->transport_stays = header.frag_off & htons(IP_OFFSET);
	shape->addresses_stay |= shape->transport_stays;
	return true;
}

static bool find_shape_6(const struct sk_buff *skb, struct shape *shape)
{
	u32 from = skb_network_offset(skb);
	struct ipv6hdr header;
	__be16 fragment;
	int transport;

	if (!postern_packet_read(skb, 0, &header, sizeof(header)) || header.version != 6)
		return false;
	shape->family = 6;
	shape->protocol = header.nexthdr;
	shape->addresses = offsetof(struct ipv6hdr, saddr);
	shape->addresses_end = sizeof(header);
	transport = ipv6_skip_exthdr(skb, from + sizeof(header), &shape->protocol, &fragment);
	if (transport >= 0 && transport - from <= shape->length)
		shape->transport = transport - from;
	shape->addresses_stay = shape->transport != sizeof(header);
	shape->transport_stays = fragment & htons(~0x7);
	return true;
}

static bool find_shape(const struct sk_buff *skb, struct shape *shape)
{
	*shape = (struct shape){ .length = postern_packet_length(skb) };
	shape->transport = shape->length;
	if (skb->protocol == htons(ETH_P_IP) ? !find_shape_4(skb, shape) :
					       !find_shape_6(skb, shape))
		return false;
	if (!shape->transport_stays)
		find_checksum(shape);
	return true;
}

/* Whether the byte may become another. */
static bool may_change(const struct shape *shape, u32 at)
{
	u32 in = at - shape->transport;

	if (at >= shape->transport)
		return !shape->transport_stays &&
		       !(shape->protocol == IPPROTO_TCP && in == 12) &&
		       !(shape->protocol == IPPROTO_UDP && (in == 4 || in == 5));
	if (at >= shape->addresses && at < shape->addresses + (shape->family == 4 ? 8 : 32))
		return !shape->addresses_stay;
	/* Kind of service, number, time to live, checksum; flow, hop limit. */
	if (shape->family == 4)
		return at == 1 || at == 4 || at == 5 || at == 8 || at == 10 || at == 11;
	return (at >= 1 && at <= 3) || at == 7;
}

static bool may_write(const struct sk_buff *skb, const struct shape *shape, u32 offset, const u8 *from,
		      u32 size)
{
	u32 at;
	u8 now;

	for (at = offset; at < offset + size; at++) {
		if (may_change(shape, at))
			continue;
		if (!postern_packet_read(skb, at, &now, 1) || now != from[at - offset])
			return false;
	}
	return true;
}

/* The sum of the bytes of [from, to) that lie in [first, end), in words from `first` on. */
static __wsum sum_of(const u8 *packet, u32 first, u32 end, u32 from, u32 to)
{
	from = max(from, first);
	to = min(to, end);
	if (from >= to)
		return 0;
	from -= (from - first) & 1;
	to += (to - first) & 1;
	return csum_partial(packet + from, min(to, end) - from, 0);
}

/* What the transport's checksum covers of the bytes, without itself. */
static __wsum covered(const struct shape *shape, u8 *packet, u32 offset, u32 end, bool transport)
{
	__wsum sum = sum_of(packet, shape->addresses, shape->addresses_end, offset, end);

	*(__sum16 *)(packet + shape->sum) = 0;
	if (transport)
		sum = csum_add(sum, sum_of(packet, shape->transport, shape->length, offset, end));
	return sum;
}

/* Stores, and changes the transport's checksum. With `partial` it is still to be completed by who
 * sends the packet, and covers the addresses only. */
static void store_summed(const struct shape *shape, u8 *packet, u32 offset, const void *from, u32 size,
			 bool partial)
{
	__sum16 *sum = (__sum16 *)(packet + shape->sum), old = *sum;
	__wsum before = covered(shape, packet, offset, offset + size, !partial), difference;

	memcpy(packet + offset, from, size);
	difference = csum_sub(covered(shape, packet, offset, offset + size, !partial), before);
	*sum = old;
	if (partial) {
		*sum = ~csum_fold(csum_add(difference, csum_unfold(old)));
	} else if (old != 0 || !shape->may_be_absent) {
		*sum = csum_fold(csum_add(difference, ~csum_unfold(old)));
		if (*sum == 0 && shape->protocol == IPPROTO_UDP)
			*sum = CSUM_MANGLED_0;
	}
}

bool postern_packet_write(struct sk_buff *skb, u64 offset, const void *from, u32 size)
{
	u32 base = skb_network_offset(skb), end, needed;
	bool partial = skb->ip_summed == CHECKSUM_PARTIAL;
	struct shape shape;
	u8 *packet;

	if (!find_shape(skb, &shape) || offset > shape.length || size > shape.length - offset ||
	    !may_write(skb, &shape, offset, from, size))
		return false;
	/* The checksum of something inside a tunnel: the outer one cannot be told apart. */
	if (partial && shape.sum && skb_checksum_start_offset(skb) != base + shape.transport)
		return false;
	end = offset + size;
	/* A checksum is of whole words. */
	needed = min(max(end + 1, shape.sum + 2), shape.length);
	if (shape.family == 4)
		needed = max(needed, shape.transport);
	if (skb_ensure_writable(skb, base + needed))
		return false;
	packet = skb->data + base;
	if (shape.sum)
		store_summed(&shape, packet, offset, from, size, partial);
	else
		memcpy(packet + offset, from, size);
	if (shape.family == 4)
		ip_send_check((struct iphdr *)packet);
	/* What the device has summed up holds no more; the checksum itself will be looked at. */
	if (skb->ip_summed == CHECKSUM_COMPLETE)
		skb->ip_summed = CHECKSUM_NONE;
	skb_clear_hash(skb);
	return true;
}
