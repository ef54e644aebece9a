/* Postern in the Linux kernel: extensions at the device of the module `postern`, for processes with
 * CAP_SYS_ADMIN. Images are made by `postern cc --kernel`; the kernel judges them.
 *
 *     pt_kernel *kernel = pt_kernel_new(NULL);
 *     int64_t rules = pt_kernel_load(kernel, "rules.pst", NULL);
 *     uint64_t argument = 3;
 *     int64_t value;
 *     if (rules < 0 || pt_kernel_call(kernel, rules, "count", &argument, 1, &value) != PT_KERNEL_RETURNED)
 *         puts(pt_error_message());
 *
 * Errors and handles are as <postern.h> says. Numbers of extensions and attachments are the kernel's:
 * other processes see the same, and what is loaded stays when the process ends.
 *
 * Licence: Apache-2.0. */
#ifndef POSTERN_KERNEL_H
#define POSTERN_KERNEL_H

#include <postern.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pt_kernel pt_kernel;                 /* the device, open */
typedef struct pt_kernel_options pt_kernel_options; /* how an extension is loaded */
typedef struct pt_kernel_opened pt_kernel_opened;   /* an extension's shared area and ring */

/* How calls end. */
enum {
    PT_KERNEL_RETURNED = 0,
    PT_KERNEL_PAGE_FAULT = 1,
    PT_KERNEL_DIVISION = 2,
    PT_KERNEL_TRAP = 3,
    PT_KERNEL_TIMEOUT = 4,
    PT_KERNEL_BAD_ARGUMENT = 5, /* of a service */
    PT_KERNEL_SKIPPED = 6,      /* its window was in use */
    PT_KERNEL_ENDED = 7,        /* it faulted before, and is called no more */
    PT_KERNEL_ABSENT = 8,       /* it has no function of this name */
    PT_KERNEL_UNSUITABLE = 9,   /* interrupts are off there, and it may loop */
    PT_KERNEL_KINDS = 10
};

/* What an extension may do, as bits. */
enum {
    PT_KERNEL_SEE_PACKETS = 1,
    PT_KERNEL_CHANGE_PACKETS = 2,
    PT_KERNEL_OBSERVE = 4, /* memory of the kernel, and registers at probes */
    PT_KERNEL_LOG = 8
};

/* What becomes of one that faulted or took too long. */
enum {
    PT_KERNEL_KEEP = 0,    /* it goes on as it was left */
    PT_KERNEL_RESTART = 1, /* its memory is made anew before the next call */
    PT_KERNEL_END = 2      /* it is called no more */
};

/* Whose packets. */
enum {
    PT_KERNEL_INET = 1, /* both of the following */
    PT_KERNEL_IPV4 = 2,
    PT_KERNEL_IPV6 = 10
};

/* ---- The device ------------------------------------------------------------------------------ */

/* Opens the device; NULL is /dev/postern. NULL with PT_E_MACHINE if the module is not loaded. */
PT_API pt_kernel *pt_kernel_new(const char *device);
PT_API int pt_kernel_free(pt_kernel *kernel);

/* ---- Loading --------------------------------------------------------------------------------- */

/* Nothing is allowed, after a fault it begins anew, it has windows of its own without a heap, and
 * the module's limit of time. */
PT_API pt_kernel_options *pt_kernel_options_new(void);
PT_API int pt_kernel_options_free(pt_kernel_options *options);
/* What it is called; without it the file's name without folder and ending. */
PT_API int pt_kernel_options_name(pt_kernel_options *options, const char *name);
PT_API int pt_kernel_options_rights(pt_kernel_options *options, uint32_t rights);
PT_API int pt_kernel_options_on_fault(pt_kernel_options *options, int policy);
/* The extension whose windows and stack it shares; 0: none. */
PT_API int pt_kernel_options_segment(pt_kernel_options *options, uint32_t extension);
/* Bytes of heap in each window; and whether there is only one window, so that a call while it is in
 * use is skipped. */
PT_API int pt_kernel_options_memory(pt_kernel_options *options, uint32_t heap, int one_window);
/* The longest time of a call in milliseconds; 0: the module's. */
PT_API int pt_kernel_options_limit(pt_kernel_options *options, uint32_t milliseconds);

/* Loads an image, and returns its number. PT_E_REFUSED or PT_E_IMAGE if the kernel refuses it; the
 * message says where and why. NULL are the options of pt_kernel_options_new. */
PT_API int64_t pt_kernel_load(pt_kernel *kernel, const char *image, pt_kernel_options *options);
/* Puts another image in its place; hooks, maps and ring stay. */
PT_API int pt_kernel_replace(pt_kernel *kernel, uint32_t extension, const char *image, pt_kernel_options *options);
PT_API int pt_kernel_unload(pt_kernel *kernel, uint32_t extension);

/* ---- What is loaded -------------------------------------------------------------------------- */

typedef struct pt_kernel_statistics {
    uint32_t extension;
    uint32_t rights;
    uint32_t policy;  /* after a fault */
    uint32_t segment; /* the extension whose windows it shares, or 0 */
    uint64_t image;   /* bytes of it */
    uint64_t memory;  /* bytes of all windows that are present */
    uint64_t ended[PT_KERNEL_KINDS]; /* calls by how they ended */
    uint64_t queued;
    uint64_t lost; /* entries that the ring had no room for */
    uint64_t restarts;
    uint32_t hooks;
    uint32_t instructions;
    uint32_t depth;        /* of calls, at most */
    uint32_t longest_path; /* in instructions; 0 where there are loops */
    uint32_t shared;       /* bytes of the shared area */
    uint32_t reserved[7];
} pt_kernel_statistics;

/* The extension with a name, or with a number in digits. */
PT_API int64_t pt_kernel_find(pt_kernel *kernel, const char *name);
/* The first one whose number is larger; 0 if there is none. */
PT_API int64_t pt_kernel_next(pt_kernel *kernel, uint32_t extension);
PT_API int pt_kernel_statistics_of(pt_kernel *kernel, uint32_t extension, pt_kernel_statistics *statistics);
/* How the last call ended that did not return, with function and line if `image` (or NULL) is the
 * file that is loaded: as much as fits `size` bytes with a NUL. The length of the whole text, 0 if
 * there was none. */
PT_API int64_t pt_kernel_last_fault(pt_kernel *kernel, uint32_t extension, const char *image, char *text, size_t size);

/* ---- Calls ----------------------------------------------------------------------------------- */

/* Calls a function with up to six arguments: how the call ended, PT_KERNEL_…; *value is what it
 * returned. */
PT_API int pt_kernel_call(pt_kernel *kernel, uint32_t extension, const char *function, const uint64_t *arguments,
                          size_t count, int64_t *value);
/* Asks for a call, which is done to its end later. PT_E_BUSY while there is no room for it. */
PT_API int pt_kernel_queue(pt_kernel *kernel, uint32_t extension, const char *function, const uint64_t *arguments,
                           size_t count);

/* ---- Hooks ----------------------------------------------------------------------------------- */

typedef struct pt_kernel_attachment {
    uint32_t attachment;
    uint32_t extension;
    uint64_t calls;
    uint64_t passed; /* calls whose value was not 0 */
    char function[64];
    char hook[128]; /* as text: "netfilter ipv4 input 0" */
} pt_kernel_attachment;

/* Has a function called with packets at a hook of netfilter (NF_INET_LOCAL_IN …), of which `capture`
 * bytes are copied for it (0: 256); those whose call did not return pass if `otherwise` is not 0.
 * The attachment's number, as of the next three. */
PT_API int64_t pt_kernel_attach_netfilter(pt_kernel *kernel, uint32_t extension, const char *function, uint32_t hook,
                                          uint32_t family, int priority, uint32_t capture, int otherwise);
PT_API int64_t pt_kernel_attach_tracepoint(pt_kernel *kernel, uint32_t extension, const char *function,
                                           const char *name);
PT_API int64_t pt_kernel_attach_kprobe(pt_kernel *kernel, uint32_t extension, const char *function, const char *symbol,
                                       uint32_t offset);
PT_API int64_t pt_kernel_attach_timer(pt_kernel *kernel, uint32_t extension, const char *function,
                                      uint32_t microseconds);
PT_API int pt_kernel_detach(pt_kernel *kernel, uint32_t attachment);
/* What is known of the first attachment whose number is larger; its number, or 0 if there is none. */
PT_API int64_t pt_kernel_attachment_next(pt_kernel *kernel, uint32_t attachment, pt_kernel_attachment *found);

/* ---- Maps ------------------------------------------------------------------------------------ */

/* Makes map 0 to 15 of an extension: keys of 1 to 64 bytes, values of 1 to 4096. */
PT_API int pt_kernel_map_make(pt_kernel *kernel, uint32_t extension, uint32_t map, uint32_t key_size,
                              uint32_t value_size, uint32_t entries);
/* Sizes are the map's, or PT_E_ARGUMENT. 1, or 0 if there is no such key. */
PT_API int pt_kernel_map_get(pt_kernel *kernel, uint32_t extension, uint32_t map, const void *key, size_t key_size,
                             void *value, size_t value_size);
PT_API int pt_kernel_map_set(pt_kernel *kernel, uint32_t extension, uint32_t map, const void *key, size_t key_size,
                             const void *value, size_t value_size);
/* 1, or 0 if there was no such key. */
PT_API int pt_kernel_map_remove(pt_kernel *kernel, uint32_t extension, uint32_t map, const void *key, size_t key_size);
/* The key behind a key, and its value; with `key_size` 0 the first one. 1, or 0 if there is none. */
PT_API int pt_kernel_map_next(pt_kernel *kernel, uint32_t extension, uint32_t map, const void *key, size_t key_size,
                              void *next, size_t next_size, void *value, size_t value_size);

/* ---- Shared area and ring -------------------------------------------------------------------- */

/* Opens an extension. It may be unloaded meanwhile: the area stays then, and no more entries come. */
PT_API pt_kernel_opened *pt_kernel_opened_new(pt_kernel *kernel, uint32_t extension);
PT_API int pt_kernel_opened_free(pt_kernel_opened *opened);
/* The shared area, mapped until it is given back, and how long it is; NULL if there is none. The
 * extension reads and writes it at any time. */
PT_API void *pt_kernel_opened_area(pt_kernel_opened *opened, size_t *size);
/* Copies as much of the ring's next entry as fits; its length. It is waited for: at most so many
 * milliseconds, for ever if that is negative. PT_E_BUSY if none came, PT_E_END if the extension was
 * unloaded. */
PT_API int64_t pt_kernel_opened_read(pt_kernel_opened *opened, void *entry, size_t size, int milliseconds);

#ifdef __cplusplus
}
#endif
#endif
