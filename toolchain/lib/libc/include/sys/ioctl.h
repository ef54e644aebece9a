/* Nothing: an extension has no device to control. Programs include it out of habit. */
#ifndef _SYS_IOCTL_H_
#define _SYS_IOCTL_H_
#endif
