/* The smallest extension: one exported function. */
long add(int a, int b)
{
	return (long)a + b;
}
