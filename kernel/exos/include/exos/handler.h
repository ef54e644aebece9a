/* Functions in C that the library calls while the program is interrupted: compiled without
   vector registers, which nobody saves. */
#ifndef EXOS_HANDLER_H
#define EXOS_HANDLER_H

#define EXOS_HANDLER __attribute__((target("general-regs-only")))

#endif
