/* Nothing, and well. */
int main(void)
{
	return 0;
}
