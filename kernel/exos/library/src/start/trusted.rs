//! The way into C.

unsafe extern "C" {
    #[link_name = "main"]
    fn c_main(count: i32, arguments: *const *const u8, variables: *const *const u8) -> i32;
}

/// Runs the program to its end.
pub fn main() -> i32 {
    // SAFETY: the program's own function, called once, as C has it.
    unsafe { c_main(0, core::ptr::null(), core::ptr::null()) }
}
