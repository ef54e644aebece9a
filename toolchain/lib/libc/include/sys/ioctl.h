/* The little that an extension has of devices: a terminal's size. */
#ifndef _SYS_IOCTL_H_
#define _SYS_IOCTL_H_

#include <sys/cdefs.h>

__BEGIN_DECLS

#define TCGETS 0x5401
#define TIOCGWINSZ 0x5413
#define FIONREAD 0x541b
#define FIONBIO 0x5421
struct winsize {
    unsigned short ws_row, ws_col, ws_xpixel, ws_ypixel;
};
int ioctl(int, unsigned long, ...);

__END_DECLS
#endif
