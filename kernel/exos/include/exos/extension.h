/* Extensions in processes of ExOS: native code of others in protection domains inside the process,
 * called like functions. Names and meanings are those of <postern.h> on Linux, as far as they are
 * here; extension files (.px) are the same.
 *
 *     pt_image  *image  = pt_image_load("add.px");
 *     pt_domain *domain = pt_domain_new(image, NULL);
 *     long (*add)(int, int) = PT_SYM(domain, long, "l(ii)", add, (int, int));
 *     long five = add(2, 3);
 *     if (pt_fault_last()) puts(pt_fault_last()->message);
 *
 * Functions that return a pointer return NULL, functions that return int a negative pt_code;
 * pt_error_message() says what is wrong. A call of an extension that did not return gives 0, and
 * pt_fault_last() says why; pt_fault_clear() before a call makes a 0 of that call unambiguous.
 *
 * Faults come as exceptions of Aegis, deadlines at the ends of slices. A process has one thread: so
 * nothing here is for several, and nothing may be called by handlers of exceptions and events. */
#ifndef EXOS_EXTENSION_H
#define EXOS_EXTENSION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An address inside a domain's window, as extensions hold pointers. */
typedef uint32_t pt_offset;

typedef struct pt_image pt_image;
typedef struct pt_options pt_options;
typedef struct pt_domain pt_domain;

typedef enum pt_code {
    PT_OK = 0,
    PT_E_ARGUMENT = -1,
    PT_E_MACHINE = -3,
    PT_E_FILE = -6,
    PT_E_IMAGE = -7,
    PT_E_REFUSED = -8,
    PT_E_UNRESOLVED = -9,
    PT_E_SIGNATURE = -10,
    PT_E_LIMIT = -11,
    PT_E_MEMORY = -12,
    PT_E_MISSING = -13,
    PT_E_RANGE = -15,
    PT_E_BUSY = -16,
    PT_E_OUTSIDE = -17,
    PT_E_FAULT = -18,
    PT_E_EXITED = -19,
    PT_E_POISONED = -20,
    PT_E_CLOSED = -21,
    PT_E_INSIDE = -24
} pt_code;

/* The sentence and the code of the last error. */
const char *pt_error_message(void);
int pt_error_code(void);

/* Reads, checks and verifies an extension file. */
pt_image *pt_image_load(const char *path);
pt_image *pt_image_from_memory(const void *bytes, size_t len);
/* Gives the handle back. Domains keep the image as long as they need it. */
int pt_image_free(pt_image *image);

/* What a domain is given: a deadline of 1 s, a heap of the image's wish or 1 MiB, no services. */
pt_options *pt_options_new(void);
int pt_options_free(pt_options *options);
int pt_options_name(pt_options *options, const char *name);
/* Longest time of one call, in microseconds; 0 is no limit. It is looked at when slices end. */
int pt_options_deadline(pt_options *options, uint64_t microseconds);
/* Bytes of heap; 0 takes the image's wish. */
int pt_options_heap(pt_options *options, uint64_t bytes);
/* Deepest nesting of calls inside the extension; 0 is as deep as the process's stack. */
int pt_options_call_depth(pt_options *options, uint32_t calls);
/* Grants a service: a plain C function with at most six parameters. `signature` is a letter for the
 * result, the parameters' in parentheses: v void, b int8_t, B uint8_t, h int16_t, H uint16_t, i
 * int32_t, I uint32_t, l int64_t, L uint64_t, f float, d double, p pt_offset, z _Bool. It runs with
 * 64 KiB of stack at least. */
int pt_options_service(pt_options *options, const char *name, void *function, const char *signature);
int pt_options_service_stack(pt_options *options, const char *name, void *function, const char *signature, size_t stack);
/* Grants an import that is a function which `domain` exports. One call takes at most so many
 * microseconds (0: what the domain's deadline allows) and finds so many bytes of stack (0: 64
 * KiB). */
int pt_options_peer(pt_options *options, const char *import, pt_domain *domain, const char *export_name, uint64_t microseconds, size_t stack);
/* Leaves an import open for pt_domain_bind_peer; until then its calls fail. */
int pt_options_peer_open(pt_options *options, const char *import);
int pt_domain_bind_peer(pt_domain *caller, const char *import, pt_domain *domain, const char *export_name, uint64_t microseconds, size_t stack);

/* Makes a domain. `options` may be NULL, and may be used again. */
pt_domain *pt_domain_new(pt_image *image, pt_options *options);
/* Closes it. Function pointers into it return 0 from now on. */
int pt_domain_free(pt_domain *domain);
/* Back to the image's first state; forgets the fault that closed it. PT_E_BUSY in a call of it. */
int pt_domain_reset(pt_domain *domain);
/* 1 if a fault closed the domain until pt_domain_reset, 0 if not. */
int pt_domain_poisoned(pt_domain *domain);
/* A C function pointer to an export, or to a function pointer that came from the extension, for
 * exactly these types. The same name and signature give the same pointer, as long as the domain
 * lives. */
void *pt_domain_sym(pt_domain *domain, const char *name, const char *signature);
void *pt_domain_sym_at(pt_domain *domain, pt_offset function, const char *signature);
/* PT_SYM(domain, long, "l(ii)", add, (int, int)) */
#define PT_SYM(domain, result, signature, name, parameters) ((result(*) parameters)pt_domain_sym(domain, #name, signature))
/* Copies out of the domain and into it. All of the range must be there. */
int pt_domain_read(pt_domain *domain, pt_offset from, void *to, size_t len);
int pt_domain_write(pt_domain *domain, pt_offset to, const void *from, size_t len);

/* In a service: ends the extension's call as a fault with a message, or with a status, once the
 * service returns. */
int pt_service_abort(const char *message);
int pt_service_exit(int status);

typedef enum pt_fault_kind {
    PT_FAULT_NONE = 0,
    PT_FAULT_NULL_POINTER = 1,
    PT_FAULT_READ = 2,
    PT_FAULT_WRITE = 3,
    PT_FAULT_READ_ONLY = 4,
    PT_FAULT_BAD_JUMP = 5,
    PT_FAULT_EXECUTE = 6,
    PT_FAULT_TRAP = 7,
    PT_FAULT_ILLEGAL_INSTRUCTION = 8,
    PT_FAULT_ARITHMETIC = 9,
    PT_FAULT_MISALIGNED = 10,
    PT_FAULT_DATA_STACK_OVERFLOW = 11,
    PT_FAULT_CONTROL_STACK_OVERFLOW = 12,
    PT_FAULT_HEAP_LIMIT = 13,
    PT_FAULT_DEADLINE = 14,
    PT_FAULT_INTERRUPTED = 15,
    PT_FAULT_ANOTHER_THREAD = 16,
    PT_FAULT_SERVICE_STACK = 17,
    PT_FAULT_ABORTED = 18,
    PT_FAULT_KILLED = 19,
    PT_FAULT_EXITED = 64,
    PT_FAULT_REFUSED = 65
} pt_fault_kind;

enum { PT_HAS_OFFSET = 1, PT_HAS_ADDRESS = 2, PT_HAS_REGISTERS = 4 };

/* Why a call did not return. */
typedef struct pt_fault {
    size_t size;
    int32_t kind;           /* pt_fault_kind */
    uint32_t has;           /* PT_HAS_… */
    pt_offset offset;       /* of the instruction */
    pt_offset address;      /* that was accessed or jumped to */
    int32_t status;         /* of PT_FAULT_EXITED */
    int32_t vector;         /* the processor's exception, or 0 */
    uint64_t registers[15]; /* rax rbx rcx rdx rsi rdi rbp r8 … r15 */
    uint64_t depth;         /* of calls when it happened */
    uint32_t frames;        /* return offsets in `backtrace`, innermost first */
    pt_offset backtrace[32];
    const char *message;    /* one sentence */
    const char *domain;     /* name of the domain that faulted, or "" */
} pt_fault;

/* Why the last call that did not return did not, or NULL if none did since pt_fault_clear. Valid
 * until it is asked again. */
const pt_fault *pt_fault_last(void);
void pt_fault_clear(void);
/* A kind's name in kebab case. */
const char *pt_fault_kind_name(int kind);

#ifdef __cplusplus
}
#endif
#endif
