/* Terminals: what they are set to can be asked for, and is not changed. Numbers are Linux's. */
#ifndef _TERMIOS_H
#define _TERMIOS_H

#include <sys/cdefs.h>
#include <sys/types.h>

__BEGIN_DECLS

typedef unsigned char cc_t;
typedef unsigned speed_t, tcflag_t;
#define NCCS 32
struct termios {
    tcflag_t c_iflag, c_oflag, c_cflag, c_lflag;
    cc_t c_line, c_cc[NCCS];
    speed_t c_ispeed, c_ospeed;
};

enum {
    VINTR, VQUIT, VERASE, VKILL, VEOF, VTIME, VMIN, VSWTC, VSTART, VSTOP, VSUSP, VEOL, VREPRINT, VDISCARD, VWERASE, VLNEXT, VEOL2
};
#define VINTR VINTR
#define VMIN VMIN
#define VTIME VTIME
#define IGNBRK 01
#define BRKINT 02
#define IGNPAR 04
#define PARMRK 010
#define INPCK 020
#define ISTRIP 040
#define INLCR 0100
#define IGNCR 0200
#define ICRNL 0400
#define IXON 02000
#define IXANY 04000
#define IXOFF 010000
#define OPOST 01
#define ONLCR 04
#define OCRNL 010
#define CSIZE 060
#define CS5 0
#define CS6 020
#define CS7 040
#define CS8 060
#define CSTOPB 0100
#define CREAD 0200
#define PARENB 0400
#define PARODD 01000
#define HUPCL 02000
#define CLOCAL 04000
#define ISIG 01
#define ICANON 02
#define ECHO 010
#define ECHOE 020
#define ECHOK 040
#define ECHONL 0100
#define NOFLSH 0200
#define TOSTOP 0400
#define IEXTEN 0100000
#define TCSANOW 0
#define TCSADRAIN 1
#define TCSAFLUSH 2
#define TCIFLUSH 0
#define TCOFLUSH 1
#define TCIOFLUSH 2
#define TCOOFF 0
#define TCOON 1
#define TCIOFF 2
#define TCION 3
#define B0 0
#define B1200 011
#define B2400 013
#define B4800 014
#define B9600 015
#define B19200 016
#define B38400 017
#define B57600 010001
#define B115200 010002

int tcgetattr(int, struct termios *);
int tcsetattr(int, int, const struct termios *);
int tcsendbreak(int, int);
int tcdrain(int);
int tcflush(int, int);
int tcflow(int, int);
speed_t cfgetispeed(const struct termios *);
speed_t cfgetospeed(const struct termios *);
int cfsetispeed(struct termios *, speed_t);
int cfsetospeed(struct termios *, speed_t);
void cfmakeraw(struct termios *);

__END_DECLS

#endif
