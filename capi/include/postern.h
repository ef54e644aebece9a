/* Postern: native extensions in their own protection domains, called like functions.
 *
 *     pt_image  *image  = pt_image_load("add.px");              checked and verified, once
 *     pt_domain *domain = pt_domain_new(image, NULL);                 an instance: a window of 4 GiB
 *     long (*add)(int, int) = PT_SYM(domain, long, add, (int, int));    a plain function pointer
 *     long five = add(2, 3);                                    about the price of a function call
 *     if (pt_fault_last()) puts(pt_fault_last()->message);      it failed, the host did not
 *
 * Names. pt_OBJECT_verb: pt_domain_reset resets a domain. Functions of the whole process have no
 * object (pt_init, pt_metrics). PT_SYM and its kin are the macros for the one function that every
 * host calls.
 *
 * Errors. Functions that return a pointer return NULL, functions that return int return a negative
 * pt_code; pt_error_message() says in a sentence what is wrong and what to do. A call of an
 * extension that did not return gives 0 instead, and pt_fault_last() says why; pt_fault_clear()
 * before a call makes a 0 of that call unambiguous.
 *
 * Ownership. Handles (pt_image, pt_options, pt_policy, pt_domain, pt_shared, pt_pool, pt_module,
 * pt_namespace, and those of <postern-filter.h>) are opaque and never reused: one that was given
 * back, or was never made, is refused with PT_E_HANDLE. Who gets a handle from pt_OBJECT_new, or
 * from another function that makes one, gives it back with pt_OBJECT_free; what needs the object
 * keeps it, so any order will do. Handles from pt_service_caller, pt_hot_window_domain and
 * pt_…_domain are borrowed: they are valid as long as what they were asked of, and are not given
 * back. Text that is returned (const char *) is the library's; the comment says how long it is
 * valid. Whatever is given to a function is copied or used before it returns, but for functions,
 * the `user` pointers that go with them, and memory of shared areas. Other pointers are the host's
 * own and are trusted, but for NULL.
 *
 * Where calls may be made.
 *   Threads: every function from every thread. Errors and faults belong to the thread.
 *   Services: every function. One that would wait for the calling thread itself (to close or reset
 *     the domain it is inside, to use the handler that it runs for) does not wait for it, or says
 *     PT_E_BUSY. A host may longjmp out of a service over the call that led to it;
 *     pt_thread_unwind tells Postern. C++ exceptions must not leave a service.
 *   Signal handlers: pt_handle_signal only. A call of an extension is refused there (PT_E_INSIDE),
 *     as far as it can be told.
 *   Forked children: every function, in the child of a process with threads, too. Handles stay
 *     valid there, and what child and parent do then is their own, but for shared areas. The
 *     parent's other threads do not exist: domains that they were inside are poisoned, and what
 *     else they were using (a source that one waited for, say) is PT_E_BUSY. A child of vfork(2)
 *     may call nothing but exec and _exit.
 *
 * Code that is replaced or added while it runs is in <postern-modules.h>, what system calls and
 * services may do in <postern-policy.h>, events that call handlers in <postern-events.h>, which this
 * includes; packets (filters, captures, handlers)
 * are in <postern-filter.h>.
 *
 * Licence: Apache-2.0. */
#ifndef POSTERN_H
#define POSTERN_H

#include <stddef.h>
#include <stdint.h>

/* The version of this header. The library's is pt_version(): it is as new, or newer with the same
 * PT_VERSION_MAJOR. */
#define PT_VERSION_MAJOR 0
#define PT_VERSION_MINOR 1
#define PT_VERSION_PATCH 0
#define PT_VERSION (PT_VERSION_MAJOR * 1000000 + PT_VERSION_MINOR * 1000 + PT_VERSION_PATCH)

/* What the library exports. A host that is built with hidden visibility finds it all the same. */
#ifndef PT_API
#ifdef __GNUC__
#define PT_API __attribute__((visibility("default")))
#else
#define PT_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* An address inside a domain's window, as extensions hold pointers. An allegation: whatever an
 * extension passes is checked when it is used. 0 is the null pointer. */
typedef uint32_t pt_offset;

typedef struct pt_image pt_image;     /* an extension file, checked and verified */
typedef struct pt_options pt_options; /* what a domain is given: services, limits */
typedef struct pt_domain pt_domain;   /* an instance of an image */
typedef struct pt_policy pt_policy;   /* what system calls of an extension may do */
typedef struct pt_shared pt_shared;   /* memory that the host and domains see at once */
typedef struct pt_pool pt_pool;       /* domains that are lent */
typedef struct pt_module pt_module;   /* a domain whose image can be replaced */
typedef struct pt_namespace pt_namespace; /* a domain to which functions are added while it runs */

typedef enum pt_code {
    PT_OK = 0,
    PT_E_ARGUMENT = -1,          /* NULL, not UTF-8, out of range, not a signature */
    PT_E_HANDLE = -2,            /* not a handle, or one that was closed */
    PT_E_MACHINE = -3,           /* the machine or the kernel lacks something */
    PT_E_SYSTEM = -4,            /* the kernel refused something */
    PT_E_CONFIGURED = -5,        /* Postern runs already, with another configuration */
    PT_E_FILE = -6,              /* the file cannot be read */
    PT_E_IMAGE = -7,             /* the file is not a well-formed extension */
    PT_E_REFUSED = -8,           /* the verifier refused the code */
    PT_E_UNRESOLVED = -9,        /* the extension imports what the domain is not given */
    PT_E_SIGNATURE = -10,        /* types differ */
    PT_E_LIMIT = -11,            /* limits do not fit, or one is reached */
    PT_E_MEMORY = -12,           /* no memory or address space, no room in the heap */
    PT_E_MISSING = -13,          /* no export of this name */
    PT_E_UNTYPED = -14,          /* the file does not say the types of a function, and they are needed */
    PT_E_RANGE = -15,            /* not all of a range is mapped in the domain */
    PT_E_BUSY = -16,             /* threads are inside the domain, or have the object in use */
    PT_E_OUTSIDE = -17,          /* not called by a service */
    PT_E_FAULT = -18,            /* a call ended in a fault: pt_fault_last() */
    PT_E_EXITED = -19,           /* a call ended by exit: pt_fault_last()->status */
    PT_E_POISONED = -20,         /* an earlier fault closed the domain: pt_domain_reset() */
    PT_E_CLOSED = -21,           /* the domain is closed */
    PT_E_SIGNAL_BLOCKED = -22,   /* a signal that must reach Postern is blocked in this thread */
    PT_E_HANDLER_REPLACED = -23, /* somebody replaced Postern's signal handler */
    PT_E_INSIDE = -24,           /* called in a signal handler that interrupted an extension */
    PT_E_PANIC = -25,            /* a bug in Postern; the message says where */
    PT_E_RESTING = -26,          /* an earlier fault closed the domain, and its restart policy lets it rest */
    PT_E_HAND_OVER = -27,        /* the new version of a module did not take over; the old one goes on */
    PT_E_SOURCE = -28,           /* E-code source or a packet filter is wrong; the message says where */
    PT_E_END = -29,              /* no error: there are no more packets */
    PT_E_HANDLER_STACK = -35     /* a handler of the host's was installed without SA_ONSTACK: PT_ADOPT_HANDLERS */
} pt_code;

/* The sentence for the calling thread's last error, or "" if there is none. Valid until the
 * thread's next error. */
PT_API const char *pt_error_message(void);
/* Its code, or PT_OK. */
PT_API int pt_error_code(void);

/* What is wrong at a place of a source, for PT_E_SOURCE. Set `size` to sizeof(pt_source_error). */
typedef struct pt_source_error {
    size_t size;
    uint32_t line, column;      /* from 1; columns are bytes */
    uint32_t length;            /* bytes that it is about, at least 1 */
    uint32_t reserved;
    const char *kind;           /* "syntax", "unknown-name" and so on */
    const char *file;           /* the header that it is in, or "" if it is in the source itself */
    const char *message;        /* what is wrong */
    const char *help;           /* what to do, or "" */
    const char *text;           /* the line, shortened if it is long */
} pt_source_error;

/* The calling thread's last error as data, if it is of E-code's source: the place with this number,
 * from 0. 1 if there is one, 0 if not. The texts are valid until the thread's next error. */
PT_API int pt_error_source(uint32_t number, pt_source_error *to);

/* ---- The process ----------------------------------------------------------------------------- */

enum {
    PT_NO_HOT_WINDOW = 1, /* keep extensions out of the low 4 GiB (which is their fastest place) */
    PT_NO_HANDLERS = 2,   /* install no signal handlers: the host calls pt_handle_signal from its own */
    PT_ADOPT_HANDLERS = 4, /* give handlers that were installed without SA_ONSTACK that flag, instead of refusing calls */
    PT_RESTORE_GS = 8,    /* the gs base is the host's again after each call and in services; calls cost some hundred cycles more */
    PT_DUMP = 16          /* core dumps have the memory of extensions, too, with shared areas and the text of namespaces */
};

/* Zero in a field means its default. */
typedef struct pt_config {
    size_t size;        /* sizeof(pt_config) */
    uint32_t flags;     /* PT_NO_… */
    uint32_t tick_us;   /* how often the watchdog looks, in microseconds; 1000 */
    int32_t signal;     /* the signal by which calls are ended; SIGRTMAX - 3 */
    uint32_t reserved;  /* 0 */
    uint64_t control_stack; /* most bytes of control stack that a thread's calls may use; 8 MiB. Threads
                             * whose own stack is larger run extensions on one of the library's, through
                             * a slower gate */
} pt_config;

/* The library's version, as PT_VERSION. */
PT_API uint32_t pt_version(void);
/* Starts Postern. Without it the first load starts it with the default. `config` may be NULL. */
PT_API int pt_init(const pt_config *config);
/* 1 if this machine can run extensions; else 0, and *reason (if not NULL) is a sentence that stays
 * valid. */
PT_API int pt_supported(const char **reason);
/* Makes Postern's signal handlers the first ones again, in front of those that were installed after
 * it started; with PT_ADOPT_HANDLERS gives all others SA_ONSTACK. For a host whose calls fail with
 * PT_E_HANDLER_REPLACED. */
PT_API int pt_rearm(void);
/* Gives the process a safe point that reaches into extensions: for a host whose signal handlers only
 * set a flag, at which it looks now and then. While *flag is not 0, `look` is called with `context`
 * at every tick of the watchdog on each thread that is in an extension's code: between two
 * instructions, on the thread's own stack, as a service is. It may do what services do, also leave
 * by longjmp. It returns 0, and the call goes on where it was; or not 0, and the call ends with
 * PT_FAULT_INTERRUPTED. Threads in services, and in the host, look themselves. It is not called
 * where less than 128 KiB of stack are left, nor on a coroutine's stack. A later one takes its
 * place; with a NULL flag there is none. */
PT_API int pt_set_safe_point(const volatile int *flag, int (*look)(void *context), void *context);
/* Ends the calling thread's innermost call with PT_FAULT_INTERRUPTED: for signal handlers, which
 * may have interrupted it, or the thread anywhere else. In a service it ends when that returns. 1 if
 * there is one, 0 if not. Async-signal-safe; it leaves pt_error_message as it is. */
PT_API int pt_interrupt_mine(void);
/* For a host with PT_NO_HANDLERS: call it first in an SA_SIGINFO | SA_ONSTACK handler of SIGSEGV,
 * SIGBUS, SIGILL, SIGFPE, SIGTRAP and the abort signal, with the handler's arguments. Return at
 * once if it returns 1: the signal was Postern's. An abort signal that comes when its call is over
 * is nobody's: it returns 0, and the handler ignores it. */
PT_API int pt_handle_signal(int signal, void *info, void *context);

/* ---- Images ---------------------------------------------------------------------------------- */

/* Reads, checks and verifies an extension file: a regular one of at most 256 MiB. The same bytes
 * are verified once per process. */
PT_API pt_image *pt_image_load(const char *path);
/* The same, of at most so many bytes. Loading takes time and memory by the length of the file. */
PT_API pt_image *pt_image_load_limited(const char *path, uint64_t most);
/* The same, from memory; the bytes are copied. */
PT_API pt_image *pt_image_from_memory(const void *bytes, size_t len);
/* Judges the image's code once more, without loops and indirect branches: every call of it ends by
 * itself, after at most so many instructions, with calls at most so deep in each other (UINT32_MAX:
 * whatever can be counted). PT_E_REFUSED says where it does not; the image stays what it was.
 * *instructions and *depth (if not NULL) are what was found. */
PT_API int pt_image_bounded(pt_image *image, uint32_t most_instructions, uint32_t most_depth,
                     uint32_t *instructions, uint32_t *depth);
/* Gives the handle back. Domains keep the image as long as they need it. */
PT_API int pt_image_free(pt_image *image);

/* ---- What a domain is given ------------------------------------------------------------------ */

enum {
    PT_PLACE_AUTO = 0, /* in the hot window if nobody asks for it, and by time inside */
    PT_PLACE_HOT = 1,  /* in the hot window; the first that asks keeps it */
    PT_PLACE_COLD = 2  /* never there, and never moved */
};

/* Options with their defaults: a deadline of 1 s, a heap of the image's wish or 64 MiB, 4096
 * threads, no services. */
PT_API pt_options *pt_options_new(void);
PT_API int pt_options_free(pt_options *options);
/* What faults and tables call the domain; without it the image's name and a number. */
PT_API int pt_options_name(pt_options *options, const char *name);
/* Longest time of one call, in microseconds; 0 is no limit. */
PT_API int pt_options_deadline(pt_options *options, uint64_t microseconds);
/* Bytes of heap; 0 takes the image's wish. */
PT_API int pt_options_heap(pt_options *options, uint64_t bytes);
/* Most bytes of heap, and of variables that begin as zero, that an image gets by its own wish; 0 is
 * the default, 256 MiB. An image that wishes for more is refused, with PT_E_LIMIT. What
 * pt_options_heap says is not bounded by it. */
PT_API int pt_options_heap_ceiling(pt_options *options, uint64_t bytes);
/* Bytes of each data stack, 4 KiB to 64 MiB, rounded up to a power of two; 0 takes what the image
 * was linked with. */
PT_API int pt_options_data_stack(pt_options *options, uint64_t bytes);
/* Deepest nesting of calls inside the extension; 0 is as deep as the thread's own stack. */
PT_API int pt_options_call_depth(pt_options *options, uint32_t calls);
/* Threads that may ever be inside. */
PT_API int pt_options_threads(pt_options *options, uint32_t threads);
/* Threads at once that the extension may start by itself (pthread_create in a program): threads of
 * the process, each a call of the domain's with its deadline; 0, the default, is none. They end with
 * the program, and with pt_domain_reset and pt_domain_free. */
PT_API int pt_options_own_threads(pt_options *options, uint32_t threads);
/* Threads of the process that go on with handlers that have to wait, and call what the extension
 * spawns (postern/threads.h); 0, the default, is none. They are there as long as the domain. */
PT_API int pt_options_sandbox_threads(pt_options *options, uint32_t threads);
/* Where the window shall lie: PT_PLACE_… */
PT_API int pt_options_placement(pt_options *options, int placement);
/* A pointer of the host's that pt_domain_user gives back. */
PT_API int pt_options_user(pt_options *options, void *user);

/* Grants a service: `function`, a plain C function, is called directly when the extension calls
 * `name`. `signature` is its type: a letter for the result, the parameters' in parentheses, at most
 * six: v void, b int8_t, B uint8_t, h int16_t, H uint16_t, i int32_t, I uint32_t, l int64_t, L
 * uint64_t, f float, d double, p pt_offset, z _Bool. `long add(int, int)` is "l(ii)", or
 * PT_SIGNATURE(long, (int, int)). Arguments may have any value, but a _Bool is 0 or 1. The function
 * runs with 64 KiB of stack at least. */
PT_API int pt_options_service(pt_options *options, const char *name, void *function, const char *signature);
/* The same with the stack that it needs, in bytes. */
PT_API int pt_options_service_stack(pt_options *options, const char *name, void *function, const char *signature, size_t stack);

/* Grants an import that is a function which `domain` exports: calls go there through the gates
 * alone, and that domain stays in memory as long as the one that calls. One call takes at most so
 * many microseconds (0: what the domain's deadline allows) and finds so many bytes of control stack
 * (0: 64 KiB); a caller's deadline is put off meanwhile. How a call failed is the calling
 * extension's to ask: postern_peer_error(), in postern/extension.h. */
PT_API int pt_options_peer(pt_options *options, const char *import, pt_domain *domain, const char *export_name, uint64_t microseconds, size_t stack);
/* Leaves an import open for pt_domain_bind_peer; until then its calls fail. */
PT_API int pt_options_peer_open(pt_options *options, const char *import);
/* Binds it, or binds it anew, for calls that begin from now on. That keeps `domain` in memory no
 * longer than pt_domain_free does. */
PT_API int pt_domain_bind_peer(pt_domain *caller, const char *import, pt_domain *domain, const char *export_name, uint64_t microseconds, size_t stack);

/* All processes that have the memory of a domain of pt_domain_shared may have this service of this
 * process used, as they like; `sys` are the system calls that the policy grants. What is granted
 * without that is PT_E_ARGUMENT there. Other domains are as without it. */
PT_API int pt_options_grant_to_all(pt_options *options, const char *service);

/* ---- Domains --------------------------------------------------------------------------------- */

/* Makes a domain. `options` may be NULL, and may be used again. */
PT_API pt_domain *pt_domain_new(pt_image *image, pt_options *options);
/* Makes a domain whose variables, heap and locks are those that `postern share NAME` keeps: the same
 * in every process that does so, with the same image. A name with a `/` is the path of the broker's
 * socket. Services and policy are this process's; but all that have the memory can have the
 * domain's functions use them, so each is named by pt_options_grant_to_all. pt_domain_reset resets it for all. PT_E_SYSTEM: nobody shares it,
 * or this process may not have it; PT_E_ARGUMENT: it is of another image. */
PT_API pt_domain *pt_domain_shared(const char *name, pt_image *image, pt_options *options);
/* What closed such a domain, and in which process: as much of the sentence as fits, with a NUL.
 * Returns its length, 0 if nothing did or the domain is another. */
PT_API int64_t pt_domain_poison(pt_domain *domain, char *text, size_t size);
/* Gives the handle back and closes the domain: ends the calls inside, waits for them (but not for
 * one whose service calls this), and wipes the window. Function pointers into it return 0 from now
 * on. */
PT_API int pt_domain_free(pt_domain *domain);
/* Back to the image's first state; forgets the fault that closed it. PT_E_BUSY while threads are
 * inside. */
PT_API int pt_domain_reset(pt_domain *domain);
/* Ends every call that is inside now. The domain stays usable. From any thread. */
PT_API int pt_domain_interrupt(pt_domain *domain);
/* 1 if a fault closed the domain until pt_domain_reset, 0 if not. */
PT_API int pt_domain_poisoned(pt_domain *domain);
/* Its name, until it is closed; "" for an error. */
PT_API const char *pt_domain_name(pt_domain *domain);
/* What pt_options_user was given, or NULL. */
PT_API void *pt_domain_user(pt_domain *domain);

/* A C function pointer to an export. `signature` is the type by which the host calls it: arguments
 * are copied from registers and from the caller's stack by it, and by nothing that the file says;
 * convert the pointer to exactly this type. PT_SYM(domain, long, add, (int, int)) writes the
 * signature and the type from one text: use it where the compiler allows (C11, C++11).
 * PT_E_SIGNATURE if the file claims that the function has other types. Every thread may call it
 * until pt_domain_free; from then on calls return 0, until its place is used again for a function
 * of the same type, which is not before 1,024 more such pointers have ended. The same name and
 * signature give the same pointer. Up to six integer and eight floating-point arguments travel in
 * registers, sixteen in all are possible; pointers are pt_offset, for which `I` will do, too. */
PT_API void *pt_domain_sym(pt_domain *domain, const char *name, const char *signature);
/* The same for a function pointer that came from the extension; PT_SYM_AT(domain, function, long,
 * (int, int)). */
PT_API void *pt_domain_sym_at(pt_domain *domain, pt_offset function, const char *signature);
/* What the file claims of an export's types, as text: as much as fits to[0 … size) with a NUL; the
 * length of all of it, or an error (PT_E_UNTYPED if it claims nothing). An allegation, for people
 * and for hosts that make up their arguments by it, each of them on purpose. Never give it to
 * pt_domain_sym for a pointer whose type was written before: a file may claim more parameters than
 * the call has, and would get whatever lies behind them. `to` may be NULL if size is 0. */
PT_API int64_t pt_domain_signature(pt_domain *domain, const char *name, char *to, size_t size);

/* Runs the extension's main() with `argc` arguments, of which the first is the program's name, and
 * an environment that ends with NULL (envp may be NULL). Returns the low byte of its exit status,
 * or an error. A program runs once: pt_domain_reset makes it fresh. */
PT_API int pt_domain_main(pt_domain *domain, int argc, const char *const *argv, const char *const *envp);

/* ---- After a fault --------------------------------------------------------------------------- */

enum {
    PT_RESTART_NEVER = 0,    /* a domain that faulted is closed until pt_domain_reset: the default */
    PT_RESTART_IMMEDIATE = 1 /* the next call finds it in the image's first state */
};

/* What happens after a fault: PT_RESTART_… */
PT_API int pt_options_restart(pt_options *options, int how);
/* The next call finds the domain in the image's first state, but it rests before: calls are refused
 * with PT_E_RESTING for `first` microseconds (100000), `factor` (2) times longer after each further
 * fault in a row, at most `most` (30000000). After `give_up_after` faults in a row it stays closed
 * until pt_domain_reset; 0 is never. 0 elsewhere is the default. */
PT_API int pt_options_back_off(pt_options *options, uint64_t first, uint32_t factor, uint64_t most, uint32_t give_up_after);

/* ---- Pools ----------------------------------------------------------------------------------- */

enum {
    PT_POOL_KEEP = 1,      /* a domain is not reset between two loans, unless it faulted */
    PT_POOL_PER_THREAD = 2 /* a thread gets the domain that it had last, without a lock */
};

/* What can be counted of a pool. */
enum {
    PT_POOL_SIZE, PT_POOL_IN_USE, PT_POOL_IDLE, PT_POOL_WAITING, PT_POOL_TAKEN, PT_POOL_WAITED, PT_POOL_REFUSED,
    PT_POOL_MADE, PT_POOL_RESETS, PT_POOL_RESTARTS, PT_POOL_ABANDONED
};

/* Pools made with these options have at most `domains` (0: as many as processors), `warm` of them
 * made ahead; PT_POOL_… */
PT_API int pt_options_pool(pt_options *options, uint32_t domains, uint32_t warm, int flags);
/* While all are in use, at most `callers` wait, each for so long (any number, for 1 s). */
PT_API int pt_options_pool_wait(pt_options *options, uint64_t microseconds, uint32_t callers);
/* A pool of domains of an image. A domain that faulted begins anew at once, unless the options name
 * another restart policy. */
PT_API pt_pool *pt_pool_new(pt_image *image, pt_options *options);
/* Gives the handle back: the pool lends nothing more. Domains on loan are closed when they are put
 * back, the others now. */
PT_API int pt_pool_free(pt_pool *pool);
/* A domain for the caller alone, until pt_pool_put. NULL: PT_E_BUSY, PT_E_RESTING, PT_E_POISONED
 * (all faulted for good), or why none could be made. pt_domain_sym gives the same pointers for a
 * domain through all its loans. */
PT_API pt_domain *pt_pool_take(pt_pool *pool);
/* Ends a loan: the domain is reset for the next one, and its handle is no longer valid. From any
 * thread. pt_domain_free on a domain that is lent closes it for good, and the pool makes
 * another. */
PT_API int pt_pool_put(pt_pool *pool, pt_domain *domain);
/* From now on the pool's domains are of this image. If none can be made, nothing changes. */
PT_API int pt_pool_replace(pt_pool *pool, pt_image *image, pt_options *options);
/* How many there are, or were: PT_POOL_SIZE and so on. */
PT_API int pt_pool_count(pt_pool *pool, int what, uint64_t *value);

/* ---- Seeing domains -------------------------------------------------------------------------- */

/* What a domain has done so far. */
typedef struct pt_counters {
    size_t size;           /* sizeof(pt_counters): set it before the call */
    uint64_t calls;        /* calls that entered */
    uint64_t faults;       /* calls that ended in a fault */
    uint64_t inside_ns;    /* time inside in nanoseconds, sampled by the watchdog */
    uint64_t hot_ns;       /* how much of it was in the hot window */
    uint64_t moves;        /* times the domain was moved */
    uint64_t services;     /* calls of services */
    uint64_t denied;       /* calls of services that were denied */
    uint64_t system_calls; /* system calls that the policy granted */
    uint64_t refused;      /* system calls that it refused */
    /* Of sandbox threads: */
    uint64_t promoted;     /* handlers that had to wait, for a thread to go on with them */
    uint64_t spawned;      /* functions that the extension spawned */
    uint64_t resumed;      /* handlers with which a thread went on */
    uint64_t skipped;      /* functions that a reset or the domain's end made void */
    uint64_t full;         /* handlers and functions for which there was no place */
    uint64_t busy;         /* threads that are in one now */
    uint64_t longest;      /* most that ever waited at once */
    uint64_t ended;        /* handlers with which no thread went on: the domain was reset, closed, or refused it */
} pt_counters;

PT_API int pt_domain_counters(pt_domain *domain, pt_counters *counters);
/* Pages of 4096 bytes that the domain has for itself, in memory or on swap; or an error. Takes time
 * in proportion to its heap. */
PT_API int64_t pt_domain_pages(pt_domain *domain);
/* Pages that it sees together with the host, in memory and touched by it: of shared areas, and of a
 * namespace's code and variables. */
PT_API int64_t pt_domain_shared_pages(pt_domain *domain);

enum {
    PT_BY_IMAGE = 1, /* lines for images, with all domains that they have and had, not for each live domain */
    PT_PAGES = 2     /* count pages, too */
};

/* Stores all counters of the process as text for Prometheus (text/plain; version=0.0.4), cut to
 * `size` bytes with the NUL. Returns the length of the whole text, or an error. With a size of 0,
 * `buffer` may be NULL. */
PT_API int64_t pt_metrics(void *buffer, size_t size, uint32_t flags);

/* Asks for the hot window, or leaves it, from now on: PT_PLACE_… The domain is moved between calls;
 * none is refused. */
PT_API int pt_domain_set_placement(pt_domain *domain, int placement);
/* 1 if the domain is in the hot window now, 0 if not. */
PT_API int pt_domain_hot(pt_domain *domain);
/* The domain in the hot window, or NULL. */
PT_API pt_domain *pt_hot_window_domain(void);
/* "free", "taken", "off" (by configuration) or "occupied" (something else of the process lies in
 * the low 4 GiB). */
PT_API const char *pt_hot_window_state(void);

/* ---- Inside a service ------------------------------------------------------------------------ */

/* The domain that called the service in which this thread is, or NULL (PT_E_OUTSIDE). */
PT_API pt_domain *pt_service_caller(void);
/* How many calls of extensions the thread is inside: 0 outside, 1 in a service, more when services
 * call extensions. */
PT_API uint32_t pt_thread_nesting(void);
/* For a host that leaves services by longjmp: forgets the innermost calls until `nesting` are left.
 * Their services must never return. Call it where longjmp arrives, with what pt_thread_nesting said
 * at setjmp. */
PT_API int pt_thread_unwind(uint32_t nesting);
/* Ends the extension's call as a fault with this message, once the service returns. */
PT_API int pt_service_abort(const char *message);
/* Ends it with a status, once the service returns. */
PT_API int pt_service_exit(int status);

/* ---- Memory of a domain ---------------------------------------------------------------------- */

/* Allocates in the domain's heap by calling its malloc. 0 if there is no room. */
PT_API pt_offset pt_heap_alloc(pt_domain *domain, size_t bytes);
/* Gives memory back by calling its free. */
PT_API int pt_heap_free(pt_domain *domain, pt_offset offset);
/* Copies out of the domain. All of the range must be mapped. */
PT_API int pt_domain_read(pt_domain *domain, pt_offset from, void *to, size_t len);
/* Copies into the domain. All of the range must be writable. */
PT_API int pt_domain_write(pt_domain *domain, pt_offset to, const void *from, size_t len);
/* Copies a NUL-terminated string into to[0 … size); returns its length, or an error if it does not
 * fit with its NUL. */
PT_API int64_t pt_domain_read_string(pt_domain *domain, pt_offset from, char *to, size_t size);

/* ---- Shared memory --------------------------------------------------------------------------- */

enum {
    PT_NO_ACCESS = 0,
    PT_READ_ONLY = 1,
    PT_READ_WRITE = 3
};

/* An area of `len` zero bytes that the host and domains see at once. It has the same offset in
 * every domain, and that offset is the low half of the host's address: a pointer into the area that
 * the host stores there works in extensions as it is. */
PT_API pt_shared *pt_shared_new(size_t len);
/* The same with a name for faults and tables (NULL: "area#" and a number) and an offset to lie at,
 * a multiple of 4096 from 0x100000 up (0: the highest that is free, and from 0x10000000 up). A low
 * one costs small domains less memory for page tables. */
PT_API pt_shared *pt_shared_new_as(const char *name, pt_offset place, size_t len);
/* The same over `len` bytes of a file from offset `at`, a multiple of 4096; nothing is copied. If
 * the descriptor cannot write, neither can anybody. If the file is truncated, an extension that
 * touches the missing pages has a fault PT_FAULT_BUS, and pt_shared_read an error; but through
 * pt_shared_address the host is ended by SIGBUS, as with any mapping. */
PT_API pt_shared *pt_shared_from_fd(int fd, uint64_t at, size_t len);
PT_API pt_shared *pt_shared_from_fd_as(const char *name, pt_offset place, int fd, uint64_t at, size_t len);
/* The same over memory that the host shares already: whole pages that it mapped with MAP_SHARED, of
 * a memfd, another file, or anonymous. They get a second address, pt_shared_address; the first
 * mapping may go. PT_E_ARGUMENT if the memory is private. */
PT_API pt_shared *pt_shared_from_memory(const char *name, pt_offset place, void *memory, size_t len);
/* What faults and tables call the area; valid until pt_shared_free. */
PT_API const char *pt_shared_name(pt_shared *shared);
/* Where the host sees the area, until pt_shared_free and until every domain that sees it is
 * closed. */
PT_API void *pt_shared_address(pt_shared *shared);
/* The host's pointer for one that was found in the area, whoever wrote it there, if all `len` bytes
 * there are in the area; else NULL (PT_E_RANGE). A host pointer gives itself. Whatever an extension
 * can write must go through this before it is followed. */
PT_API void *pt_shared_at(pt_shared *shared, const void *pointer, size_t len);
/* Copies out of the area and into it, from byte `at`. */
PT_API int pt_shared_read(pt_shared *shared, size_t at, void *to, size_t len);
PT_API int pt_shared_write(pt_shared *shared, size_t at, const void *from, size_t len);
/* Gives the handle back. Domains that see the area keep it. */
PT_API int pt_shared_free(pt_shared *shared);
/* Lets a domain see all of the area until it is closed or the area withdrawn (pt_domain_reset does
 * not change that); the area's offset, or 0. PT_E_ARGUMENT if it sees it already with other access:
 * pt_domain_protect changes that. */
PT_API pt_offset pt_domain_expose(pt_domain *domain, pt_shared *shared, int access);
/* What the domain may do from now on with `len` bytes of the area from byte `from`: whole pages, or
 * up to the area's end. Threads may be inside. After an error the domain has what it had. */
PT_API int pt_domain_protect(pt_domain *domain, pt_shared *shared, size_t from, size_t len, int access);
/* What it may do with the page that holds byte `at`: PT_NO_ACCESS, PT_READ_ONLY, PT_READ_WRITE, or
 * an error. */
PT_API int pt_domain_protection(pt_domain *domain, pt_shared *shared, size_t at);
/* Takes all access to the area away. Threads may be inside: their next access is a fault that names
 * the area. */
PT_API int pt_domain_withdraw(pt_domain *domain, pt_shared *shared);
/* Prints the table of the process, which domain may do what with which range, as `postern inspect
 * --live` does: as much of it as fits to[0 … size) with a NUL. Returns the length of all of it;
 * `to` may be NULL if size is 0. */
PT_API int64_t pt_memory_table(char *to, size_t size);

/* ---- Faults ---------------------------------------------------------------------------------- */

typedef enum pt_fault_kind {
    PT_FAULT_NONE = 0,
    PT_FAULT_NULL_POINTER = 1,           /* an access to the window's first 64 KiB */
    PT_FAULT_READ = 2,                   /* a read where nothing is mapped */
    PT_FAULT_WRITE = 3,                  /* a write where nothing is mapped */
    PT_FAULT_READ_ONLY = 4,              /* a write to read-only memory */
    PT_FAULT_BAD_JUMP = 5,               /* a jump through a pointer that is no function */
    PT_FAULT_EXECUTE = 6,                /* execution outside verified text */
    PT_FAULT_TRAP = 7,                   /* the program's own trap */
    PT_FAULT_ILLEGAL_INSTRUCTION = 8,    /* an instruction that this processor lacks */
    PT_FAULT_ARITHMETIC = 9,             /* division by zero or overflow */
    PT_FAULT_MISALIGNED = 10,            /* a misaligned vector access */
    PT_FAULT_DATA_STACK_OVERFLOW = 11,   /* locals exceed the data stack */
    PT_FAULT_CONTROL_STACK_OVERFLOW = 12,/* calls nest too deeply */
    PT_FAULT_HEAP_LIMIT = 13,            /* an access just above the heap */
    PT_FAULT_DEADLINE = 14,              /* the call took too long */
    PT_FAULT_INTERRUPTED = 15,           /* pt_domain_interrupt, pt_interrupt_mine, a safe point */
    PT_FAULT_ANOTHER_THREAD = 16,        /* another thread's fault closed the domain */
    PT_FAULT_SERVICE_STACK = 17,         /* too little control stack left for a service */
    PT_FAULT_ABORTED = 18,               /* the extension or a service gave up, with a message */
    PT_FAULT_KILLED = 19,                /* the policy ended the call, with its reason */
    PT_FAULT_BUS = 20,                   /* an access to a page of an area that its file has no more */
    PT_FAULT_DELETED = 21,               /* a function of a namespace was called that has been deleted; its name */
    /* Calls that did not return but are no faults: */
    PT_FAULT_EXITED = 64,                /* the extension exited; `status` */
    PT_FAULT_REFUSED = 65,               /* the call was not made; pt_error_code() and `message` say why */
    PT_FAULT_OTHER = 66                  /* a kind that this header does not know */
} pt_fault_kind;

enum {
    PT_HAS_OFFSET = 1,    /* `offset` is known */
    PT_HAS_ADDRESS = 2,   /* `address` is known */
    PT_HAS_REGISTERS = 4, /* `registers` are known */
    PT_HAS_AREA = 8       /* `address` is in a shared area */
};

/* The registers' places in pt_fault.registers. */
enum {
    PT_RAX, PT_RBX, PT_RCX, PT_RDX, PT_RSI, PT_RDI, PT_RBP, PT_R8, PT_R9, PT_R10, PT_R11, PT_R12, PT_R13, PT_R14, PT_R15,
    PT_REGISTERS
};

/* Why a call did not return. Later versions add fields at the end; `size` says how many there
 * are. */
typedef struct pt_fault {
    size_t size;
    int32_t kind;                     /* pt_fault_kind */
    uint32_t has;                     /* PT_HAS_… */
    pt_offset offset;                 /* of the instruction */
    pt_offset address;                /* that was accessed or jumped to */
    int32_t status;                   /* of PT_FAULT_EXITED */
    int32_t signal;                   /* that the processor's exception became, or 0 */
    uint64_t registers[PT_REGISTERS]; /* pointers are window offsets in their low 32 bits */
    uint64_t depth;                   /* of calls when it happened */
    uint32_t frames;                  /* return offsets in `backtrace` */
    pt_offset backtrace[32];          /* innermost first; exact, for the extension cannot write them */
    const char *message;              /* one sentence, with the place */
    const char *place;                /* "function at file:line", or "" */
    const char *domain;               /* name of the domain that faulted, or "" */
    const char *area;                 /* name of the shared area that `address` is in, or "" */
    pt_offset area_start;             /* the area's offset */
    uint32_t page;                    /* number of the page in the area, from 0 */
    int32_t access;                   /* what the domain may do with it: PT_NO_ACCESS, PT_READ_ONLY, PT_READ_WRITE */
} pt_fault;

/* Why the calling thread's last call that did not return did not, or NULL if none did since
 * pt_fault_clear. Valid until the thread's next error or call that does not return. */
PT_API const pt_fault *pt_fault_last(void);
/* The same fault as a report of many lines, registers and backtrace with names; "" if there is
 * none. */
PT_API const char *pt_fault_report(void);
/* Forgets the fault and the error. */
PT_API void pt_fault_clear(void);
/* A kind's name in kebab case, for logs and metrics: "null-pointer". */
PT_API const char *pt_fault_kind_name(int kind);
/* `handler` is called with every fault of the domains made with `options`, after the extension has
 * been left, on the thread that made the call. It must return. NULL for none. */
PT_API int pt_options_on_fault(pt_options *options, void (*handler)(const pt_fault *fault, void *user), void *user);

#ifdef __cplusplus
}
#endif

#include <postern-events.h>
#include <postern-modules.h>
#include <postern-policy.h>
#include <postern-types.h>
#endif
