/* Functions in C that the library calls while the program is interrupted: compiled without
   vector registers, which nobody saves. */
#ifndef EXOS_HANDLER_H
#define EXOS_HANDLER_H

#define EXOS_HANDLER __attribute__((target("general-regs-only")))

/* Variables that pieces of the library may touch at any time, also where no fault could be served:
   they lie with the library's own. */
#define EXOS_RESIDENT __attribute__((section(".exos.resident")))

#endif
