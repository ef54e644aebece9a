/* IPv4 packets of at most 128 bytes to an even port, in E-code. */
int filter(const unsigned char *packet, unsigned length, unsigned wire_length)
{
	if (length < 38 || wire_length > 128)
		return 0;
	if (packet[12] != 8 || packet[13] != 0 || packet[14] != 0x45)
		return 0;
	return (packet[37] & 1) == 0;
}
