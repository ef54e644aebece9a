/* A plugin of the emulator's: how many instructions the machine has executed, as a word in a file, which
 * others may look at while it runs; and, as another word, how many it had when it last wrote a byte to a port,
 * as it does to the serial line. A processor that waits executes none.
 *
 * The emulator's header is not in Debian's packages: what is used of it is declared here. */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void translated(uint64_t id, struct qemu_plugin_tb *block);

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translated *callback);
typedef void wrote(unsigned processor, void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *instruction);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *instruction, wrote *callback, int flags, void *data);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, int operation, void *counter, uint64_t add);

EXPORT int qemu_plugin_version = 1;

static uint64_t *executed;

static void write_out(unsigned processor, void *data)
{
	(void)processor;
	(void)data;
	executed[1] = executed[0];
}

static void look(uint64_t id, struct qemu_plugin_tb *block)
{
	(void)id;
	for (size_t at = 0; at < qemu_plugin_tb_n_insns(block); at++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, at);

		/* out %al, (%dx) */
		if (qemu_plugin_insn_size(instruction) == 1 && *(const uint8_t *)qemu_plugin_insn_data(instruction) == 0xee)
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, write_out, 0, NULL);
	}
	qemu_plugin_register_vcpu_tb_exec_inline(block, 0, executed, qemu_plugin_tb_n_insns(block));
}

EXPORT int qemu_plugin_install(uint64_t id, const void *machine, int count, char **words)
{
	int file;

	(void)machine;
	if (count != 1 || strncmp(words[0], "to=", 3))
		return -1;
	file = open(words[0] + 3, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (file < 0 || ftruncate(file, 2 * sizeof *executed))
		return -1;
	executed = mmap(NULL, 2 * sizeof *executed, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (executed == MAP_FAILED)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, look);
	return 0;
}
