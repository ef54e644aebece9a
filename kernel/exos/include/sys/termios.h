/* How a process reads the console, with the numbers of Linux. Each process has a way of its own,
   which begins as lines with an echo. Of the flags `ICANON`, `ECHO` and `ISIG` are heeded. */
#ifndef EXOS_SYS_TERMIOS_H
#define EXOS_SYS_TERMIOS_H

typedef unsigned char cc_t;
typedef unsigned int speed_t;
typedef unsigned int tcflag_t;

#define NCCS 32

struct termios {
	tcflag_t c_iflag;
	tcflag_t c_oflag;
	tcflag_t c_cflag;
	tcflag_t c_lflag;
	cc_t c_line;
	cc_t c_cc[NCCS];
	speed_t c_ispeed;
	speed_t c_ospeed;
};

#define VINTR 0
#define VERASE 2
#define VKILL 3
#define VEOF 4
#define VTIME 5
#define VMIN 6

#define ISIG 0000001
#define ICANON 0000002
#define ECHO 0000010

#define TCSANOW 0
#define TCSADRAIN 1
#define TCSAFLUSH 2

/* ENOTTY: it is not the console. */
int tcgetattr(int descriptor, struct termios *to);
int tcsetattr(int descriptor, int when, const struct termios *from);

#endif
