/* Has no entry. */
long other(long a)
{
	return a;
}
