// SPDX-License-Identifier: GPL-2.0
/* Packets: functions that netfilter calls, in the network namespace of whoever attaches them.
 *
 * A namespace may end while something is attached in it: it is detached then, before netfilter looks
 * whether all have gone. So no reference of a namespace is kept, which would let it never end. */
#include <linux/netfilter.h>
#include <linux/nsproxy.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/skbuff.h>
#include <net/net_namespace.h>

#include "hook.h"

#define USUAL_CAPTURE 256
#define MOST_CAPTURE 4096

static u32 copy_packet(void *subject, u8 *to, u32 most)
{
	return postern_packet_read(subject, 0, to, most) ? most : 0;
}

static unsigned int judge(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct attachment *attachment = priv;
	u32 length = postern_packet_length(skb), captured = min(length, attachment->how.capture);
	const u64 arguments[6] = { 0, captured, length, state->hook };
	u64 value;

	if (postern_hook_call(attachment, arguments, SUBJECT_PACKET, skb, copy_packet, captured,
			      &value) != POSTERN_RETURNED)
		return attachment->how.otherwise ? NF_ACCEPT : NF_DROP;
	return value ? NF_ACCEPT : NF_DROP;
}

static int join(struct attachment *attachment)
{
	struct postern_attach *how = &attachment->how;

	if (how->family != NFPROTO_IPV4 && how->family != NFPROTO_IPV6 && how->family != NFPROTO_INET)
		return -EINVAL;
	if (how->number > NF_INET_POST_ROUTING || how->capture > MOST_CAPTURE || how->otherwise > 1 ||
	    how->target[0])
		return -EINVAL;
	how->capture = how->capture ?: USUAL_CAPTURE;
	attachment->net = current->nsproxy->net_ns;
	attachment->ops = (struct nf_hook_ops){
		.hook = judge,
		.priv = attachment,
		.pf = how->family,
		.hooknum = how->number,
		.priority = how->priority,
	};
	if (postern_fails_now())
		return -ENOMEM;
	return nf_register_net_hook(attachment->net, &attachment->ops);
}

static void leave(struct attachment *attachment)
{
	nf_unregister_net_hook(attachment->net, &attachment->ops);
	/* Packets on other processors may still be at it. */
	synchronize_rcu();
}

const struct hook postern_netfilter = {
	.rights = POSTERN_MAY_SEE_PACKETS,
	.join = join,
	.leave = leave,
};

static void __net_exit namespace_ends(struct net *net)
{
	postern_leave_net(net);
}

static struct pernet_operations namespaces = { .exit = namespace_ends };

int postern_netfilter_init(void)
{
	return register_pernet_subsys(&namespaces);
}

void postern_netfilter_exit(void)
{
	unregister_pernet_subsys(&namespaces);
}
