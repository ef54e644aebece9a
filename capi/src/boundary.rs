//! What C passes, and what it becomes: the only module with `unsafe`.
//!
//! A parameter of one of these types has what `postern.h` demands of the host: pointers that are
//! NULL or valid for the call. NULL is refused here; the rest cannot be checked. No other code can
//! make a value of them, so they are what C passed; a pointer is consumed when it becomes a
//! reference, so no two are made of one; and references end with the call (`'call`), which an
//! exported function leaves open, so none can be kept.

mod packet;
mod sized;

pub use packet::{PacketIn, Packets};
pub use sized::{ConfigIn, CountersOut, SourceErrorOut};

use crate::failure::{self, Code, Failure};
use crate::structures::{CCall, CFault, CQuestion, Reason};
use postern::{AreaBuilder, DomainBuilder, Look, ShareError, Shared, Signature};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::AtomicI32;

fn null(what: &str) -> Failure {
    Failure::new(Code::Argument, format!("the {what} is NULL"))
}

/// `const char *`: a NUL-terminated string.
#[repr(transparent)]
pub struct Text<'call>(*const c_char, PhantomData<&'call c_char>);

impl<'call> Text<'call> {
    /// The string.
    ///
    /// # Errors
    /// NULL or not UTF-8.
    pub fn get(self, what: &str) -> Result<&'call str, Failure> {
        let bytes = self.bytes(what)?;
        std::str::from_utf8(bytes).map_err(|e| {
            Failure::new(
                Code::Argument,
                format!("the {what} is not UTF-8 from byte {}", e.valid_up_to()),
            )
        })
    }

    /// The string, if there is one.
    ///
    /// # Errors
    /// Not UTF-8.
    pub fn optional(self, what: &str) -> Result<Option<&'call str>, Failure> {
        match self.0.is_null() {
            true => Ok(None),
            false => self.get(what).map(Some),
        }
    }

    /// The string's bytes, for paths.
    ///
    /// # Errors
    /// NULL.
    pub fn bytes(self, what: &str) -> Result<&'call [u8], Failure> {
        if self.0.is_null() {
            return Err(null(what));
        }
        // SAFETY: not null, so a NUL-terminated string of the host that stays during the call; and
        // the result ends with it.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }
}

/// `const void *` to bytes that are read.
#[repr(transparent)]
pub struct Source<'call>(*const c_void, PhantomData<&'call u8>);

impl<'call> Source<'call> {
    /// The bytes.
    ///
    /// # Errors
    /// NULL with a length that is not 0; a length that no object has.
    pub fn get(self, len: usize, what: &str) -> Result<&'call [u8], Failure> {
        if len == 0 {
            return Ok(&[]);
        }
        check(self.0.is_null(), len, what)?;
        // SAFETY: not null, so `len` readable bytes of the host during the call; and the result
        // ends with it.
        Ok(unsafe { std::slice::from_raw_parts(self.0.cast(), len) })
    }
}

/// `const uint64_t *` to words that are read.
#[repr(transparent)]
pub struct Words<'call>(*const u64, PhantomData<&'call u64>);

impl Words<'_> {
    /// The words.
    ///
    /// # Errors
    /// NULL with a count that is not 0; a count that no object has.
    pub fn get(self, count: usize, what: &str) -> Result<Vec<u64>, Failure> {
        let bytes = Source(self.0.cast(), PhantomData).get(count.saturating_mul(8), what)?;
        let words = bytes.chunks_exact(8).filter_map(|word| word.first_chunk());
        Ok(words.map(|word| u64::from_ne_bytes(*word)).collect())
    }
}

/// `void *` to bytes that are written.
#[repr(transparent)]
pub struct Target<'call>(*mut c_void, PhantomData<&'call mut u8>);

impl<'call> Target<'call> {
    /// The bytes.
    ///
    /// # Errors
    /// As [`Source::get`].
    pub fn get(self, len: usize, what: &str) -> Result<&'call mut [u8], Failure> {
        if len == 0 {
            return Ok(&mut []);
        }
        check(self.0.is_null(), len, what)?;
        // SAFETY: not null, so `len` writable bytes of the host that nothing else uses during the
        // call. Whether C ever wrote them cannot be seen from here: the host is compiled apart, and
        // any byte is a u8.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.0.cast(), len) })
    }

    /// The same place, for text.
    pub fn text(self) -> TextTarget<'call> {
        TextTarget(self.0.cast(), PhantomData)
    }
}

/// `char *` to a buffer for text.
#[repr(transparent)]
pub struct TextTarget<'call>(*mut c_char, PhantomData<&'call mut u8>);

impl TextTarget<'_> {
    /// Stores the text and a NUL; there must be room for both.
    ///
    /// # Errors
    /// NULL.
    pub fn put(self, text: &[u8]) -> Result<(), Failure> {
        let to = Target(self.0.cast(), PhantomData).get(text.len() + 1, "buffer")?;
        to[..text.len()].copy_from_slice(text);
        to[text.len()] = 0;
        Ok(())
    }

    /// Stores as many characters of the text as fit a buffer of `size` bytes with a NUL. The length
    /// of the whole text.
    ///
    /// # Errors
    /// NULL with a size that is not 0.
    pub fn fill(self, size: usize, text: &str) -> Result<i64, Failure> {
        if let Some(most) = size.checked_sub(1) {
            let mut ends = (0..=text.len().min(most)).rev();
            let kept = ends.find(|&end| text.is_char_boundary(end));
            self.put(&text.as_bytes()[..kept.unwrap_or(0)])?;
        }
        Ok(text.len() as i64)
    }
}

fn check(is_null: bool, len: usize, what: &str) -> Result<(), Failure> {
    if is_null {
        return Err(null(what));
    }
    if len > isize::MAX as usize {
        return Err(Failure::new(
            Code::Argument,
            format!("the {what} cannot have {len} bytes"),
        ));
    }
    Ok(())
}

/// A pointer through which one value goes out, or NULL.
#[repr(transparent)]
pub struct Out<'call, T>(*mut T, PhantomData<&'call mut T>);

impl<T> Out<'_, T> {
    /// Stores the value unless the pointer is NULL.
    pub fn put(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, so a place of the host for one value.
            unsafe { self.0.write(value) };
        }
    }

    /// Itself.
    ///
    /// # Errors
    /// NULL.
    pub fn needed(self, what: &str) -> Result<Self, Failure> {
        match self.0.is_null() {
            true => Err(null(what)),
            false => Ok(self),
        }
    }
}

/// A pointer to a place for several values.
#[repr(transparent)]
pub struct Many<'call, T>(*mut T, PhantomData<&'call mut T>);

impl<'call, T: Copy> Many<'call, T> {
    /// The place, for a count of values.
    ///
    /// # Errors
    /// NULL with a count that is not 0; a count that no object has.
    pub fn needed(self, count: usize, what: &str) -> Result<Places<'call, T>, Failure> {
        if count > 0 {
            check(self.0.is_null(), count.saturating_mul(size_of::<T>()), what)?;
        }
        Ok(Places { to: self, count })
    }
}

/// A place for so many values.
pub struct Places<'call, T> {
    to: Many<'call, T>,
    count: usize,
}

impl<T: Copy> Places<'_, T> {
    /// Stores values, the first of which there is room for.
    pub fn put(self, values: &[T]) {
        let count = values.len().min(self.count);
        if count != 0 {
            // SAFETY: not null, so a place of the host for as many values as it said, and there are
            // no more.
            unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.to.0, count) };
        }
    }
}

/// `void *` to a function.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Function(usize);

impl Function {
    /// Itself.
    ///
    /// # Errors
    /// NULL.
    pub fn needed(self, what: &str) -> Result<Function, Failure> {
        match self.0 {
            0 => Err(null(what)),
            _ => Ok(self),
        }
    }
}

/// `int`, a file descriptor.
#[repr(transparent)]
pub struct Descriptor(c_int);

impl Descriptor {
    /// A descriptor of our own for the same file.
    ///
    /// # Errors
    /// It is not open.
    pub fn duplicate(self) -> Result<OwnedFd, Failure> {
        // SAFETY: fcntl takes any number; a result that is not negative is a new descriptor, and
        // nobody else's.
        unsafe {
            match libc::fcntl(self.0, libc::F_DUPFD_CLOEXEC, 0) {
                fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
                _ => Err(Failure::new(
                    Code::Argument,
                    format!("descriptor {}: {}", self.0, std::io::Error::last_os_error()),
                )),
            }
        }
    }
}

/// Grants a service that the host promised to be a C function of this signature.
pub fn grant(
    builder: DomainBuilder,
    name: &str,
    function: Function,
    signature: Signature,
    stack: usize,
) -> DomainBuilder {
    // SAFETY: `pt_options_service` passes on its caller's promise: a C function of this type, for
    // any arguments, from any thread.
    unsafe { builder.service_c(name, function.0 as *const (), signature, stack) }
}

/// `void *` to memory that the host has mapped and shares.
#[repr(transparent)]
pub struct HostMemory(*mut c_void);

/// Makes an area of memory that the host has mapped.
///
/// # Errors
/// The memory cannot be shared.
pub fn expose(builder: AreaBuilder, memory: HostMemory, len: usize) -> Result<Shared, ShareError> {
    // SAFETY: the host promises that the memory stays mapped during the call. That it has no Rust
    // references to it is its own affair: the host is compiled apart.
    unsafe { builder.expose(memory.0.cast(), len) }
}

/// A function of the host's, or NULL. It may be called from any thread, with the pointer that came
/// with it.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Callback<F>(Option<F>);

impl<F> Callback<F> {
    /// No function.
    pub const NONE: Callback<F> = Callback(None);

    /// Whether there is one.
    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }
}

impl<F> Default for Callback<F> {
    fn default() -> Callback<F> {
        Callback::NONE
    }
}

/// `void *` that a function of the host's is called with: what it means is the host's affair.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default)]
pub struct User(usize);

impl User {
    fn pointer(self) -> *mut c_void {
        self.0 as *mut c_void
    }

    /// For the host again.
    pub fn number(self) -> usize {
        self.0
    }
}

/// `size_t (*)(void *, void *, size_t)`, or NULL: fills a buffer.
pub type Reader = Callback<unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> usize>;

/// `void (*)(void *, const void *, size_t)`, or NULL: takes bytes.
pub type Writer = Callback<unsafe extern "C" fn(*mut c_void, *const c_void, usize)>;

/// `int (*)(void *, pt_call *)`, or NULL: decides a system call.
pub type CallHandler = Callback<unsafe extern "C" fn(*mut c_void, *mut CCall) -> c_int>;

/// `int (*)(void *, pt_question *)`, or NULL: decides a call of a service or of the system.
pub type Decide = Callback<unsafe extern "C" fn(*mut c_void, *mut CQuestion) -> c_int>;

/// Asks the host about a call.
pub fn decide(decide: Decide, question: &mut CQuestion, user: User) -> c_int {
    match decide.0 {
        // SAFETY: the host gave a function of this type; the structure and what it points to live
        // during the call.
        Some(decide) => unsafe { decide(user.pointer(), question) },
        None => 0,
    }
}

/// The text that a function of the host pointed to, or `otherwise`. Called right after that
/// function.
pub fn reason(text: Reason, otherwise: &str) -> String {
    match Text(text.pointer(), PhantomData).bytes("reason") {
        Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Err(_) => otherwise.to_owned(),
    }
}

/// Has the host fill a buffer; how many bytes it has, at most all.
pub fn read(reader: Reader, to: &mut [u8], user: User) -> usize {
    let Some(reader) = reader.0 else { return 0 };
    // SAFETY: the host gave a function of this type; the buffer lives during the call.
    let read = unsafe { reader(user.pointer(), to.as_mut_ptr().cast(), to.len()) };
    read.min(to.len())
}

/// Hands bytes to the host.
pub fn write(writer: Writer, bytes: &[u8], user: User) {
    if let Some(writer) = writer.0 {
        // SAFETY: as above.
        unsafe { writer(user.pointer(), bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// Asks the host about a system call.
pub fn answer(handler: CallHandler, call: &mut CCall, user: User) -> c_int {
    match handler.0 {
        // SAFETY: the host gave a function of this type; the structure and what it points to live
        // during the call.
        Some(handler) => unsafe { handler(user.pointer(), call) },
        None => 0,
    }
}

/// `const char *const *`: strings, up to a NULL.
#[repr(transparent)]
pub struct TextVector<'call>(*const *const c_char, PhantomData<&'call ()>);

impl<'call> TextVector<'call> {
    /// The first `count` strings.
    ///
    /// # Errors
    /// NULL in place of the vector or of a string.
    pub fn first(self, count: usize, what: &str) -> Result<Vec<&'call [u8]>, Failure> {
        if count == 0 {
            return Ok(Vec::new());
        }
        if self.0.is_null() {
            return Err(null(what));
        }
        // SAFETY: not null, so `count` pointers of the host.
        let texts = (0..count).map(|i| Text(unsafe { self.0.add(i).read() }, PhantomData));
        texts.map(|text| text.bytes(what)).collect()
    }

    /// All strings before the NULL that ends the vector; none if there is no vector.
    pub fn all(self) -> Vec<&'call [u8]> {
        let mut texts = Vec::new();
        if self.0.is_null() {
            return texts;
        }
        // SAFETY: not null, so pointers of the host up to a NULL, at which this stops.
        while let Ok(text) = Text(unsafe { self.0.add(texts.len()).read() }, PhantomData).bytes("")
        {
            texts.push(text);
        }
        texts
    }
}

/// `void (*)(const pt_fault *, void *)`, or NULL.
pub type FaultHandler = Callback<unsafe extern "C" fn(*const CFault, *mut c_void)>;

/// Calls a fault handler of the host.
pub fn call_handler(handler: FaultHandler, fault: &CFault, user: User) {
    if let Some(handler) = handler.0 {
        // SAFETY: the host gave a function of this type; the fault lives during the call.
        unsafe { handler(fault, user.pointer()) };
    }
}

/// `int (*)(pt_domain *, pt_domain *, void *)`, or NULL: hands state over.
/// `H` is the handle of a domain.
pub type HandOver<H> = Callback<unsafe extern "C" fn(H, H, *mut c_void) -> c_int>;

/// Asks the host to hand state over; 0 is done.
pub fn hand_over<H>(hand_over: HandOver<H>, old: H, new: H, user: User) -> c_int {
    match hand_over.0 {
        // SAFETY: the host gave a function of this type; handles are numbers.
        Some(hand_over) => unsafe { hand_over(old, new, user.pointer()) },
        None => 0,
    }
}

/// `void (*)(int, uint64_t, const pt_fault *, void *)`, or NULL.
pub type ReloadHandler = Callback<unsafe extern "C" fn(c_int, u64, *const CFault, *mut c_void)>;

/// Tells the host what happened to a module.
pub fn call_reload_handler(
    handler: ReloadHandler,
    event: c_int,
    version: u64,
    fault: Option<&CFault>,
    user: User,
) {
    let fault = fault.map_or(std::ptr::null(), std::ptr::from_ref);
    if let Some(handler) = handler.0 {
        // SAFETY: the host gave a function of this type; the fault, if there is one, lives during
        // the call.
        unsafe { handler(event, version, fault, user.pointer()) };
    }
}

/// `const volatile int *`, or NULL: a flag that the host sets, also in signal handlers.
#[repr(transparent)]
pub struct Flag(*const AtomicI32);

impl Flag {
    /// The flag, if there is one.
    ///
    /// # Errors
    /// Not where an int can be.
    pub fn get(self) -> Result<Option<&'static AtomicI32>, Failure> {
        if !self.0.is_aligned() {
            let why = "the flag is not aligned to 4 bytes; let it be an int's address";
            return Err(Failure::new(Code::Argument, why));
        }
        // SAFETY: NULL, or an int of the host's, which stays where it is as long as it is the safe
        // point's.
        Ok(unsafe { self.0.as_ref() })
    }
}

/// `int (*)(void *)`: looks what the host's flag is for.
pub type LookFunction = Callback<unsafe extern "C" fn(*mut c_void) -> c_int>;

/// The function of a safe point.
///
/// # Errors
/// NULL.
pub fn look(function: LookFunction, user: User) -> Result<Look, Failure> {
    let function = function.0.ok_or_else(|| null("safe point's function"))?;
    // SAFETY: the host gave a function of this type, for any thread, with this context.
    Ok(unsafe { Look::function(function, user.pointer()) })
}

/// Registers functions to run around fork: before it, and after it in either process.
pub fn at_fork(before: extern "C" fn(), in_parent: extern "C" fn(), in_child: extern "C" fn()) {
    // SAFETY: the functions take nothing and do not unwind.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

/// `pt_thread_unwind`
#[unsafe(no_mangle)]
pub extern "C" fn pt_thread_unwind(nesting: u32) -> c_int {
    failure::code(|| {
        // SAFETY: the host says that it has left the services of these calls for good.
        match unsafe { postern::unwind(nesting as usize) } {
            true => Ok(()),
            false => Err(Failure::new(
                Code::Inside,
                "a signal handler interrupted the extension; it cannot leave it",
            )),
        }
    })
}

/// `pt_handle_signal`
///
/// # Safety
/// As [`postern::handle_signal`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pt_handle_signal(
    signal: c_int,
    info: *mut c_void,
    context: *mut c_void,
) -> c_int {
    if info.is_null() || context.is_null() {
        return 0;
    }
    // SAFETY: the host passes what the system passed to its handler.
    c_int::from(unsafe { postern::handle_signal(signal, info.cast(), context) })
}
