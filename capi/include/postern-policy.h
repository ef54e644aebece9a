/* What domains may do: policies of system calls, deciders, and what is granted and taken back. It is
 * a part of <postern.h>, which includes it.
 *
 * Licence: Apache-2.0. */
#ifndef POSTERN_POLICY_H
#define POSTERN_POLICY_H

#include <postern.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- System calls ---------------------------------------------------------------------------- */

/* An extension makes system calls through the service `sys`, and its domain's policy says what they
 * do. Without a policy every call is refused with EPERM, and counted; only the one that ends the
 * call (exit_group) does so always. A policy is a draft: options and domains take what it is when
 * they get it. Functions that it calls run on the extension's thread, from any thread, and must
 * return: no longjmp. */

/* Every call is refused. A base for pt_policy_custom. */
PT_API pt_policy *pt_policy_none(void);
/* Clocks, sleep, random bytes and the standard streams: input is empty, output and error are the
 * process's own. */
PT_API pt_policy *pt_policy_compute(void);
/* The same, and files below the directories that pt_policy_grant adds. */
PT_API pt_policy *pt_policy_files(void);
PT_API int pt_policy_free(pt_policy *policy);

enum {
    PT_INHERIT = 0, /* the process's own stream */
    PT_DISCARD = 1  /* nothing comes, nothing is kept */
};

/* Where stream 0, 1 or 2 goes: PT_INHERIT, PT_DISCARD. */
PT_API int pt_policy_stream(pt_policy *policy, int stream, int how);
/* Standard input comes from `read`: it fills `to` and returns how many bytes it has; 0 is the end.
 * NULL: it is empty. */
PT_API int pt_policy_stdin(pt_policy *policy, size_t (*read)(void *user, void *to, size_t room), void *user);
/* Standard output, standard error go to `write`. NULL: nowhere. */
PT_API int pt_policy_stdout(pt_policy *policy, void (*write)(void *user, const void *bytes, size_t len), void *user);
PT_API int pt_policy_stderr(pt_policy *policy, void (*write)(void *user, const void *bytes, size_t len), void *user);
/* Grants the directory `host`, opened now, at the extension's absolute path `guest`: PT_READ_ONLY,
 * PT_READ_WRITE. */
PT_API int pt_policy_grant(pt_policy *policy, const char *guest, const char *host, int access);
/* Open files at once (256), bytes written in the domain's life (a new name counts as 4096), length
 * of a file. 0: no change. */
PT_API int pt_policy_limits(pt_policy *policy, uint32_t open_files, uint64_t written, uint64_t file_size);

/* A system call that the host is asked about. What pointers pointed to was copied: it is what will
 * be done. */
typedef struct pt_call {
    size_t size;
    int64_t number;          /* Linux's, for x86-64 */
    uint64_t words[5];       /* its arguments */
    const char *path;        /* its path, or NULL */
    const char *second_path; /* of rename, link and symlink */
    const void *bytes;       /* what it writes: `length` bytes */
    size_t length;
    void *answer;            /* for PT_EMULATE: `room` bytes, of which `answered` go into the extension's buffer */
    size_t room;
    size_t answered;
    int64_t result;          /* for PT_EMULATE: the call's result, or a negative errno */
    const char *reason;      /* for PT_KILL: text, or NULL */
} pt_call;

enum {
    PT_ALLOW = 0,    /* the policy goes on as without the function */
    PT_EMULATE = -1, /* `result` and `answer` are filled in */
    PT_KILL = -2     /* the extension's whole call ends as PT_FAULT_KILLED, for `reason` */
};

/* `decide` is asked about every call but exit_group: PT_ALLOW, PT_EMULATE, PT_KILL, or the errno
 * with which the call fails. NULL: nobody is asked. */
PT_API int pt_policy_custom(pt_policy *policy, int (*decide)(void *user, pt_call *call), void *user);
/* Domains made with `options` have this policy. NULL: none. */
PT_API int pt_options_policy(pt_options *options, pt_policy *policy);
/* Another policy for a living domain, from its next system call on; its open files are closed.
 * NULL: none. */
PT_API int pt_domain_set_policy(pt_domain *domain, pt_policy *policy);
/* How many system calls were granted, how many refused, and Linux's number of the last refused one
 * (-1: none). Any pointer may be NULL. */
PT_API int pt_domain_system_calls(pt_domain *domain, uint64_t *granted, uint64_t *refused, int64_t *last_refused);

/* ---- Decisions and grants -------------------------------------------------------------------- */

/* A domain's decider is asked before each call of a service or of the system: a function of the
 * host, or another domain. What it allows still needs a service, or a policy that grants the system
 * call. It runs on the extension's thread. */

/* A call that is to be decided. Pointers among a service's arguments are offsets of the domain's
 * window: what they point to may change before the service looks at it. What `call` shows was
 * copied: it is what will be done. */
typedef struct pt_question {
    size_t size;
    const char *domain;    /* name of the domain that calls */
    const char *service;   /* name of the service, or NULL for a system call */
    pt_call *call;         /* the system call, or NULL for a service; answers about it go in there */
    uint32_t integers;     /* arguments in `integer` */
    uint32_t floats;       /* arguments in `floating` */
    uint64_t integer[6];   /* bits, zero-extended from the width of their types */
    uint64_t floating[8];  /* bits; a float's are the low half */
    int64_t result;        /* for PT_EMULATE of a service: the result's bits */
    const char *reason;    /* for PT_KILL: text, or NULL */
} pt_question;

/* Domains made with `options` have this decider: `decide` returns PT_ALLOW, PT_EMULATE, PT_KILL, or
 * an errno: then `sys` gives it negated, and a service is not called and gives 0. NULL: nobody is
 * asked. */
PT_API int pt_options_decider(pt_options *options, int (*decide)(void *user, pt_question *question), void *user);
/* The same by the export `decide` of another domain (postern/policy.h). Its own deadline bounds the
 * time of an answer. If it faults, is late or answers nonsense, the call is denied and counted. */
PT_API int pt_options_decider_module(pt_options *options, pt_domain *module);
/* Another decider for a living domain, from its next call on. */
PT_API int pt_domain_set_decider(pt_domain *domain, int (*decide)(void *user, pt_question *question), void *user);
PT_API int pt_domain_set_decider_module(pt_domain *domain, pt_domain *module);
/* Calls of services that were not made (pt_domain_system_calls counts the others), and questions
 * that were not answered. Any pointer may be NULL. */
PT_API int pt_domain_decisions(pt_domain *domain, uint64_t *denied, uint64_t *failures);

enum {
    PT_GRANT_SERVICE = 1,   /* by its name; `sys` is all system calls but the one that ends the program */
    PT_GRANT_DIRECTORY = 2, /* by its path in the extension's eyes, with all that is open below it */
    PT_GRANT_DESCRIPTOR = 3,/* by its number, in decimal; its duplicates go with it */
    PT_GRANT_AREA = 4       /* a shared area, by its offset: "0x10000000" or decimal */
};
enum {
    PT_RETURNED = 0, /* the extension gave it back */
    PT_TAKEN = 1     /* it was taken; the repossession list has it */
};

/* Takes a grant back: the extension's __postern_revoke (postern/policy.h) is asked on this thread
 * and has so much time, then it is taken. From then on the service gives 0 (`sys`: -ECANCELED), the
 * directory does not exist, the descriptor is closed, an access to the area is a fault. Calls that
 * are being done end as they began. Of a service it waits for them: when it returns, no other
 * thread is in the service's function and none begins it (a thread that waits for this one in a
 * pt_domain_free or pt_domain_revoke excepted), so hold no lock that the function needs. 0
 * microseconds: it is not asked. PT_RETURNED, PT_TAKEN or an error. */
PT_API int pt_domain_revoke(pt_domain *domain, int kind, const char *name, uint64_t microseconds);
/* The same without asking and without waiting: threads that have passed the gate may be in the
 * service's function, or just begin it. */
PT_API int pt_domain_revoke_at_once(pt_domain *domain, int kind, const char *name);
/* Gives a service back that was revoked. */
PT_API int pt_domain_restore(pt_domain *domain, int kind, const char *name);

/* What was taken by force. */
typedef struct pt_repossession {
    size_t size;
    int kind;       /* PT_GRANT_… */
    char name[256]; /* cut to fit */
    char why[256];  /* one sentence */
} pt_repossession;

/* Entry `index` of the repossession list, which a reset empties: 1, 0 behind its end, or an
 * error. */
PT_API int pt_domain_repossessed(pt_domain *domain, uint32_t index, pt_repossession *found);
/* What the domain is granted, a line each: as much as there is room for. The length of the whole
 * text, or an error. */
PT_API int64_t pt_domain_grants(pt_domain *domain, char *text, size_t room);

#ifdef __cplusplus
}
#endif
#endif
