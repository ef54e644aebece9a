/* SPDX-License-Identifier: GPL-2.0 */
/* The device, when the module comes and goes. */
#ifndef POSTERN_DEVICE_H
#define POSTERN_DEVICE_H

int postern_device_init(void);
void postern_device_exit(void);

#endif
