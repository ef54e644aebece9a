/* eBPF's side: the same works as programs of netfilter's type (Linux 6.4 and later), and an empty
 * one for raw tracepoints. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "packet.h"

/* Complete, so that the kernel's type has the same kind. */
struct sk_buff {
	int unused;
};

static struct sk_buff unused_skb __attribute__((used));
struct bpf_nf_ctx {
	const struct nf_hook_state *state;
	struct sk_buff *skb;
};

extern int bpf_dynptr_from_skb(struct sk_buff *skb, u64 flags, struct bpf_dynptr *into) __ksym;
extern void *bpf_dynptr_slice(const struct bpf_dynptr *from, u32 offset, void *buffer, u32 size) __ksym;

char LICENSE[] SEC("license") = "GPL";

u32 http_count, http_host, hash;
/* A map of its own, so that user space fills it by name. */
struct rule rules[RULES] SEC(".data.rules");

/* The first `size` bytes, or NULL. The packets here are linear, so nothing is copied. */
#define BYTES(ctx, size) \
	({ \
		struct bpf_dynptr whole; \
		bpf_dynptr_from_skb((ctx)->skb, 0, &whole) ? (const u8 *)0 : (const u8 *)bpf_dynptr_slice(&whole, 0, 0, size); \
	})

SEC("netfilter/empty") int empty(struct bpf_nf_ctx *ctx) { return 1; }
SEC("netfilter/terms_1") int terms_1(struct bpf_nf_ctx *ctx)
{
	const u8 *p = BYTES(ctx, HEADERS + 1);
	return p && TERM(p, 0);
}
SEC("netfilter/terms_8") int terms_8(struct bpf_nf_ctx *ctx)
{
	const u8 *p = BYTES(ctx, HEADERS + 8);
	return p && TERMS_8(p, 0);
}
SEC("netfilter/terms_100") int terms_100(struct bpf_nf_ctx *ctx)
{
	const u8 *p = BYTES(ctx, HEADERS + 100);
	return p && TERMS_100(p);
}
/* As one writes it in C. */
SEC("netfilter/http_plain") int http_plain(struct bpf_nf_ctx *ctx)
{
	const u8 *p = BYTES(ctx, PACKET);
	if (p) {
		struct fields found = work_http(p);

		http_count = found.count, http_host = found.host;
	}
	return 1;
}

/* As the verifier takes it: a call for each byte, of a copy whose index it can bound. */
static u8 copy[1024];

static long next_byte(u64 k, void *reader)
{
	return read_byte(reader, HEADERS + k, copy[(HEADERS + k) & 1023]);
}

SEC("netfilter/http") int http(struct bpf_nf_ctx *ctx)
{
	struct reader reader = {};
	struct bpf_dynptr whole;

	if (!bpf_dynptr_from_skb(ctx->skb, 0, &whole) && !bpf_dynptr_read(copy, PACKET, &whole, 0, 0)) {
		bpf_loop(PAYLOAD, next_byte, &reader, 0);
		http_count = reader.found.count, http_host = reader.found.host;
	}
	return 1;
}

SEC("netfilter/sha256") int sha256(struct bpf_nf_ctx *ctx)
{
	const u8 *p = BYTES(ctx, PACKET);
	if (p)
		hash = work_sha256(p);
	return 1;
}
SEC("netfilter/thousand") int thousand(struct bpf_nf_ctx *ctx)
{
	const u8 *p = BYTES(ctx, HEADERS);
	return p && work_rules(p, rules) == 1;
}
SEC("raw_tracepoint/nothing") int nothing(void *ctx) { return 0; }
