/* Nothing, and not well. */
int main(void)
{
	return 1;
}
