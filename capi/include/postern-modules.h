/* Postern's code that changes while it runs: modules, whose image is replaced, and namespaces, to
 * which functions are added. It is a part of <postern.h>, which includes it.
 *
 * Licence: Apache-2.0. */
#ifndef POSTERN_MODULES_H
#define POSTERN_MODULES_H

#include <postern.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Modules: hot reload --------------------------------------------------------------------- */

enum {
    PT_REPLACED = 1,    /* calls go to this new version */
    PT_CONFIRMED = 2,   /* this new version stays */
    PT_ROLLED_BACK = 3, /* this version came back, because of `fault` if there is one */
    PT_DRAINED = 4      /* nobody is inside this old version any more; it is closed */
};

/* What can be counted of a module. */
enum {
    PT_MODULE_VERSION, PT_MODULE_REPLACED, PT_MODULE_REFUSED, PT_MODULE_ROLLED_BACK, PT_MODULE_HELD, PT_MODULE_DRAINING,
    PT_MODULE_ON_PROBATION
};

/* A domain whose image can be replaced while it is called. Each version is made with `options`. */
PT_API pt_module *pt_module_new(pt_image *image, pt_options *options);
/* Closes it. Its function pointers return 0 from now on. */
PT_API int pt_module_free(pt_module *module);
/* A C function pointer, as pt_domain_sym, whose calls always go to the current version;
 * PT_MODULE_SYM(module, long, add, (int, int)). */
PT_API void *pt_module_sym(pt_module *module, const char *name, const char *signature);
/* The current version, until it has drained. */
PT_API pt_domain *pt_module_domain(pt_module *module);
/* Replaces the current version: new calls go to the new one, calls inside finish where they are. If
 * the image lacks a function that pt_module_sym gave out, or anything else fails, nothing
 * changes. */
PT_API int pt_module_replace(pt_module *module, pt_image *image);
/* If a new version faults in its first `calls` (32), the old one comes back as it was left. 0: the
 * old one goes at once. */
PT_API int pt_module_probation(pt_module *module, uint32_t calls);
/* How long pt_module_replace waits for calls inside the old version (1000000); whether it ends them
 * then. */
PT_API int pt_module_drain(pt_module *module, uint64_t microseconds, int end_stragglers);
/* State is handed over by the extension: the old version's `long save(void *area, size_t room)`
 * writes it and returns its length, the new version's `int load(const void *area, size_t length)`
 * takes it and returns 0. Meanwhile calls wait. */
PT_API int pt_module_carry(pt_module *module, const char *save, const char *load, size_t room);
/* State is handed over by the host, which may call both domains and returns 0; anything else
 * refuses. NULL: there is none. */
PT_API int pt_module_hand_over(pt_module *module, int (*hand_over)(pt_domain *from, pt_domain *to, void *user), void *user);
/* The current version stays, whatever it does. */
PT_API int pt_module_confirm(pt_module *module);
/* The version before comes back: 1; 0 if the current one is not on probation. */
PT_API int pt_module_roll_back(pt_module *module);
/* How many there are, or were: PT_MODULE_VERSION and so on. */
PT_API int pt_module_count(pt_module *module, int what, uint64_t *value);
/* `handler` is called with what happens to modules made with `options`: PT_REPLACED and so on. It
 * must return, and not wait for other threads. NULL for none. */
PT_API int pt_options_on_reload(pt_options *options,
                 void (*handler)(int event, uint64_t version, const pt_fault *fault, void *user), void *user);

/* ---- Namespaces: functions that are added, replaced and deleted while others run ------------- */

/* What becomes of a namespace after a fault. */
enum {
    PT_RECOVER_DEFAULT,   /* of a function: as the namespace says; of a namespace: PT_RECOVER_TERMINATE */
    PT_RECOVER_TERMINATE, /* it is closed until pt_domain_reset */
    PT_RECOVER_CONTINUE,  /* the call has an error, all else goes on */
    PT_RECOVER_RESTART    /* the next call finds the variables with their first values; pt_options_restart says after what rest */
};

/* Registers that functions may use. */
enum { PT_USE_GENERAL, PT_USE_VECTORS, PT_USE_WIDE_VECTORS, PT_USE_ALL };

/* What can be counted of a namespace. */
enum {
    PT_NAMESPACE_CREATED, PT_NAMESPACE_LINKED, PT_NAMESPACE_UNLINKED, PT_NAMESPACE_FREED, PT_NAMESPACE_NAMES, PT_NAMESPACE_UNITS,
    PT_NAMESPACE_CODE_LEFT
};

/* A namespace over an image's exports, or an empty one (image NULL). Services of `options` are
 * called by their names. */
PT_API pt_namespace *pt_namespace_new(pt_image *image, pt_options *options, int recover, int uses);
/* Closes it. Its function pointers return 0 from now on. */
PT_API int pt_namespace_free(pt_namespace *space);
/* What namespaces that are made with `options` have for their functions: names at once (4096, at
 * most 65536), bytes of machine code (16 MiB), of constants (16 MiB) and of variables (64 MiB). 0 is
 * the default. All of it is address space until it is used; what does not fit is PT_E_LIMIT. */
PT_API int pt_options_capacity(pt_options *options, uint32_t functions, uint64_t code, uint64_t constants, uint64_t variables);
/* The domain that it is: memory, counters, reset. */
PT_API pt_domain *pt_namespace_domain(pt_namespace *space);
/* Compiles E-code and adds its functions and variables, in the place of those that had their names;
 * `unit` is what faults call it. */
PT_API int pt_namespace_create(pt_namespace *space, const char *unit, const char *source);
/* The same with an object of `postern cc -c`. It does not say the types of its functions. */
PT_API int pt_namespace_create_object(pt_namespace *space, const char *unit, const void *object, size_t length);
/* Compiles E-code to an image, for pt_image_from_memory or a file: functions that are not static are
 * exports, those that are declared and not defined imports. Returns its bytes' number, and stores
 * them if that many fit `size`; with 0, `to` may be NULL, and it is only said what is wrong with the
 * source: PT_E_SOURCE and pt_error_source, or PT_E_UNRESOLVED. */
PT_API int64_t pt_ecode_image(const char *unit, const char *source, void *to, size_t size);
/* Leads a name to the function that `other` leads to now. */
PT_API int pt_namespace_link(pt_namespace *space, const char *name, const char *other);
/* Whoever calls the function from now on gets a fault PT_FAULT_DELETED; calls inside go on. */
PT_API int pt_namespace_delete(pt_namespace *space, const char *name);
/* Frees what was replaced and deleted. PT_E_BUSY: somebody is still inside of some of it. */
PT_API int pt_namespace_collect(pt_namespace *space);
/* The id of a function, which it keeps when it is replaced; 0 if there is none of this name. */
PT_API uint64_t pt_namespace_lookup(pt_namespace *space, const char *name);
/* Calls by id: each argument and the result in a word, floating-point values as their bits. */
PT_API int pt_namespace_call(pt_namespace *space, uint64_t id, const uint64_t *arguments, size_t count, uint64_t *result);
/* A C function pointer, as pt_domain_sym, that follows when the function is replaced;
 * PT_NAMESPACE_SYM(space, long, add, (int, int)). */
PT_API void *pt_namespace_sym(pt_namespace *space, const char *name, const char *signature);
/* What is claimed of a function's types, as pt_domain_signature. */
PT_API int64_t pt_namespace_signature(pt_namespace *space, const char *name, char *to, size_t size);
/* The offset of a variable that is not static, for pt_domain_read and pt_domain_write; 0 if there
 * is none. */
PT_API uint32_t pt_namespace_variable(pt_namespace *space, const char *name);
/* The longest time of a call of this function by the host (0: only the namespace's, which is that
 * of `options`), and what becomes of the namespace after its fault: for calls by id, and for
 * pointers that are made afterwards. */
PT_API int pt_namespace_quantum(pt_namespace *space, uint64_t id, uint64_t microseconds);
PT_API int pt_namespace_recovery(pt_namespace *space, uint64_t id, int recover);
/* How many there are, or were: PT_NAMESPACE_CREATED and so on. */
PT_API int pt_namespace_count(pt_namespace *space, int what, uint64_t *value);

#ifdef __cplusplus
}
#endif
#endif
