//! Input and output ports.

use core::arch::asm;

/// Writes a byte to a port.
pub fn write(port: u16, value: u8) {
    // SAFETY: the ports written below this folder are the serial line's, the interrupt controllers'
    // and the emulator's exit; none of them reaches memory.
    unsafe {
        asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags))
    }
}

/// Reads a byte from a port.
pub fn read(port: u16) -> u8 {
    let value;
    // SAFETY: as above; reading has no effect but at the device.
    unsafe {
        asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags))
    }
    value
}

/// Stops the machine: the emulator's process ends with `status * 2 + 1`.
pub fn stop(status: u8) -> ! {
    super::serial::drain();
    write(0xf4, status);
    loop {
        super::registers::halt();
    }
}
