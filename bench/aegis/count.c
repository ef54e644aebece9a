/* A plugin of the emulator's: of what programs measure, how often a processor loads CR3, executes iret,
 * and writes a model-specific register. Those are single instructions, and a real processor takes
 * hundreds of cycles for them.
 *
 * Programs mark by instructions that do nothing, `nopl MARK(%rax)`: the begin and the end of a
 * measurement, and the end of a row, which may have many measurements; of these, the one with the
 * fewest instructions counts, for timers of the kernel's come between. A line for each row is written
 * to the file that the plugin's only argument names: instructions, loads of CR3, irets, wrmsrs.
 *
 * The emulator's header is not in Debian's packages: what is used of it is declared here. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void translated(uint64_t id, struct qemu_plugin_tb *block);
typedef void executed(unsigned processor, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translated *callback);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *instruction);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *instruction, executed *callback, int flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *instruction, int operation, void *counter, uint64_t add);

EXPORT int qemu_plugin_version = 1;

#define BEGIN 0x41450001
#define END 0x41450002
#define ROW 0x41450003

/* All, since the machine's start; since the measurement's begin; of the row's least measurement. */
static struct counts {
	uint64_t instructions, cr3, iret, wrmsr;
} all, begun, least;
static int measuring;
static FILE *file;

static void mark(unsigned processor, void *data)
{
	uintptr_t which = (uintptr_t)data;

	(void)processor;
	if (which == BEGIN) {
		begun = all;
		measuring = 1;
	} else if (which == END && measuring) {
		struct counts took = {
			all.instructions - begun.instructions, all.cr3 - begun.cr3,
			all.iret - begun.iret, all.wrmsr - begun.wrmsr,
		};

		if (took.instructions < least.instructions)
			least = took;
		measuring = 0;
	} else if (which == ROW) {
		fprintf(file, "%lu %lu %lu %lu\n", least.instructions, least.cr3, least.iret, least.wrmsr);
		fflush(file);
		memset(&least, 0xff, sizeof least);
	}
}

/* The mark of an instruction; 0: it is none. */
static uint32_t mark_of(const uint8_t *bytes, size_t size)
{
	uint32_t value;

	if (size != 7 || memcmp(bytes, "\x0f\x1f\x80", 3))
		return 0;
	memcpy(&value, bytes + 3, 4);
	return value == BEGIN || value == END || value == ROW ? value : 0;
}

/* The counter of an instruction, behind its prefixes. */
static uint64_t *counter_of(const uint8_t *bytes, size_t size)
{
	while (size && ((*bytes & 0xf0) == 0x40 || *bytes == 0x66 || *bytes == 0x2e || *bytes == 0x3e || *bytes == 0xf2 || *bytes == 0xf3))
		bytes++, size--;
	if (size == 3 && bytes[0] == 0x0f && bytes[1] == 0x22 && (bytes[2] & 0x38) == 3 << 3)
		return &all.cr3;
	if (size == 1 && bytes[0] == 0xcf)
		return &all.iret;
	if (size == 2 && bytes[0] == 0x0f && bytes[1] == 0x30)
		return &all.wrmsr;
	return NULL;
}

static void look(uint64_t id, struct qemu_plugin_tb *block)
{
	(void)id;
	for (size_t index = 0; index < qemu_plugin_tb_n_insns(block); index++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, index);
		const uint8_t *bytes = qemu_plugin_insn_data(instruction);
		size_t size = qemu_plugin_insn_size(instruction);
		uint64_t *counter = counter_of(bytes, size);
		uint32_t which = mark_of(bytes, size);

		qemu_plugin_register_vcpu_insn_exec_inline(instruction, 0, &all.instructions, 1);
		if (counter)
			qemu_plugin_register_vcpu_insn_exec_inline(instruction, 0, counter, 1);
		if (which)
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, mark, 0, (void *)(uintptr_t)which);
	}
}

EXPORT int qemu_plugin_install(uint64_t id, const void *machine, int count, char **words)
{
	(void)machine;
	file = count == 1 && !strncmp(words[0], "to=", 3) ? fopen(words[0] + 3, "w") : NULL;
	if (!file)
		return -1;
	memset(&least, 0xff, sizeof least);
	qemu_plugin_register_vcpu_tb_trans_cb(id, look);
	return 0;
}
