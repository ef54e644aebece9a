/* Without loops, so that it may be attached where interrupts can be off. */
long nothing(void) { return 0; }
