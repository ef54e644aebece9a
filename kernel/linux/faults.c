// SPDX-License-Identifier: GPL-2.0
/* Faults of extensions, which end the invocation and nothing else.
 *
 * Page faults and general protection faults are found by the kernel in the module's exception table,
 * which is ours: an entry for each instruction of an extension that has a memory operand, in the order
 * of their addresses, beside the module's own. All other exceptions (division, ud2 and what this
 * processor does not have, int3, a locked access across cache lines) come to a notifier, which sees
 * whether the instruction lies in the arena.
 *
 * Invariant: while the table is being changed no processor runs an extension or any other code of the
 * module that may fault. */
#include <linux/kdebug.h>
#include <linux/extable.h>
#include <linux/module.h>
#include <linux/sort.h>
#include <linux/stop_machine.h>
#include <linux/string.h>
#include <asm/extable.h>
#include <asm/trapnr.h>

#include "arena.h"
#include "call.h"
#include "faults.h"
#include "module.h"

/* Entries are relative to themselves in 32 bits, so they have to lie near the text: in the module's
 * own memory. */
#define MOST_ENTRIES (256 << 10)

static struct exception_table_entry table[MOST_ENTRIES];
static struct exception_table_entry *own;
static u32 own_count;

struct change {
	const u8 *text;
	const u32 *offsets;
	u32 count;
};

static unsigned long address(const struct exception_table_entry *entry)
{
	return (unsigned long)&entry->insn + entry->insn;
}

/* Moves `count` entries by so many places, within the table or into it. */
static void move(struct exception_table_entry *to, const struct exception_table_entry *from, u32 count)
{
	int by = (int)((unsigned long)from - (unsigned long)to);
	u32 i;

	memmove(to, from, count * sizeof(*to));
	for (i = 0; i < count; i++) {
		to[i].insn += by;
		to[i].fixup += by;
	}
}

/* Where the first entry at or above an address is. */
static u32 place_of(unsigned long at)
{
	u32 low = 0, high = THIS_MODULE->num_exentries;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (address(&table[middle]) < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void enter(struct exception_table_entry *entry, const u8 *instruction)
{
	u32 at = instruction - postern_arena;
	u8 *landing = postern_landings + (at >> LANDING_SHARE) * LANDING_SIZE;

	entry->insn = (int)((unsigned long)instruction - (unsigned long)&entry->insn);
	entry->fixup = (int)((unsigned long)landing - (unsigned long)&entry->fixup);
	/* Register 0 is rax. */
	entry->data = EX_TYPE_IMM_REG | EX_DATA_REG(0) | (int)(at << EX_DATA_IMM_SHIFT);
}

static int add(void *argument)
{
	const struct change *change = argument;
	u32 all = THIS_MODULE->num_exentries, at = place_of((unsigned long)change->text), i;

	move(&table[at + change->count], &table[at], all - at);
	for (i = 0; i < change->count; i++)
		enter(&table[at + i], change->text + change->offsets[i]);
	THIS_MODULE->num_exentries = all + change->count;
	return 0;
}

static int remove(void *argument)
{
	const struct change *change = argument;
	u32 all = THIS_MODULE->num_exentries, at = place_of((unsigned long)change->text);

	move(&table[at], &table[at + change->count], all - at - change->count);
	THIS_MODULE->num_exentries = all - change->count;
	return 0;
}

int postern_faults_add(const u8 *text, const u32 *offsets, u32 count)
{
	struct change change = { .text = text, .offsets = offsets, .count = count };

	if (count > MOST_ENTRIES - THIS_MODULE->num_exentries)
		return -ENOSPC;
	return count ? stop_machine(add, &change, NULL) : 0;
}

void postern_faults_remove(const u8 *text, u32 count)
{
	struct change change = { .text = text, .count = count };

	if (count)
		stop_machine(remove, &change, NULL);
}

/* What a trap number is to whoever called. */
static u32 kind_of(int trap)
{
	return trap == X86_TRAP_DE ? POSTERN_DIVISION : POSTERN_TRAP;
}

static int notified(struct notifier_block *block, unsigned long event, void *data)
{
	struct die_args *die = data;
	unsigned long at;

	if ((event != DIE_TRAP && event != DIE_INT3) || !die->regs || user_mode(die->regs))
		return NOTIFY_DONE;
	/* The processor is past an int3 when it says so. */
	at = die->regs->ip - (event == DIE_INT3);
	if (!postern_in_arena(at))
		return NOTIFY_DONE;
	postern_end_current(die->regs, kind_of(die->trapnr), at);
	return NOTIFY_STOP;
}

static struct notifier_block notifier = { .notifier_call = notified };

static int exchange(void *unused)
{
	THIS_MODULE->extable = table;
	return 0;
}

static int exchange_back(void *unused)
{
	THIS_MODULE->extable = own;
	THIS_MODULE->num_exentries = own_count;
	return 0;
}

int postern_faults_init(void)
{
	int error = register_die_notifier(&notifier);

	if (error)
		return error;
	own = THIS_MODULE->extable;
	own_count = THIS_MODULE->num_exentries;
	move(table, own, own_count);
	return stop_machine(exchange, NULL, NULL);
}

void postern_faults_exit(void)
{
	stop_machine(exchange_back, NULL, NULL);
	unregister_die_notifier(&notifier);
}
