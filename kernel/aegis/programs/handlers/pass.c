/* Looks at a message, and lets it go on to the ring. */
long raise(void);
unsigned long now(void);

volatile unsigned long when;

long message(const unsigned long *in, unsigned long length, unsigned long endpoint)
{
	when = now();
	raise();
	return 0;
}
