/* Types of the system's structures: those of Linux on x86-64. */
#ifndef _MACHINE__TYPES_H
#define _MACHINE__TYPES_H
#include <machine/_default_types.h>

typedef unsigned long __dev_t;
typedef unsigned long __ino_t;
typedef unsigned int __uid_t;
typedef unsigned int __gid_t;
typedef unsigned long __fsfilcnt_t;
#define __machine_dev_t_defined
#define __machine_ino_t_defined
#define __machine_uid_t_defined
#define __machine_gid_t_defined
#define __machine_fsfilcnt_t_defined

#define __machine_clock_t_defined
#define _CLOCK_T_ long
#define __machine_clockid_t_defined
#define _CLOCKID_T_ int
#endif
