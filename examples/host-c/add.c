/* An extension: what a host calls, and what it calls of the host. */
int limit(void);

long add(int a, int b)
{
	long sum = (long)a + b;
	return sum < limit() ? sum : limit();
}

int at(int *p)
{
	return *p;
}
