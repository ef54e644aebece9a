/* Wants what nobody offers. */
long open(long a);

long message(const void *in, unsigned long length, unsigned long endpoint)
{
	return open(1);
}
