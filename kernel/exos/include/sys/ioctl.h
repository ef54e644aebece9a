/* What is asked of devices in ways of their own, of which there are none: -1 and ENOTTY. */
#ifndef EXOS_SYS_IOCTL_H
#define EXOS_SYS_IOCTL_H

#ifdef __cplusplus
extern "C" {
#endif

int ioctl(int file, unsigned long request, ...);

#ifdef __cplusplus
}
#endif
#endif
