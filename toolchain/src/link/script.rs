//! The linker script: where the parts of an extension lie (the extension ABI, sections 1 and 7).

use std::fmt::Write;

use postern_verifier::window::{INFO_STACK_MASK, STACK_MASK, STACK_MASK_WORD, text_start};

/// What one link needs to know.
pub struct Plan {
    /// Offset of text.
    pub text: u32,
    /// Binary logarithm of the data stack's size.
    pub stack_log2: u32,
    /// Whether there is a writable segment.
    pub data: bool,
    /// Whether frames and landing pads are described, for an unwinder that is linked.
    pub frames: bool,
    /// The largest alignment of a thread-local variable; none if there is none, nor code that wants
    /// the thread pointer.
    pub thread_locals: Option<u64>,
}

const DEBUG_SECTIONS: &str = "debug_aranges debug_info debug_abbrev debug_line debug_str debug_line_str debug_ranges \
    debug_rnglists debug_loclists debug_loc debug_addr debug_str_offsets debug_macro debug_types";

const FRAMES: &str = "  .eh_frame_hdr : { __postern_frame_index = .; *(.eh_frame_hdr) } :constants
  .eh_frame : { KEEP(*(.eh_frame)) *(.eh_frame.*) } :constants
  .gcc_except_table : { *(.gcc_except_table .gcc_except_table.*) } :constants
";

impl Plan {
    /// The first link's plan: no slots, every segment.
    pub fn trial(stack_log2: u32) -> Self {
        Self {
            text: text_start(0),
            stack_log2,
            data: true,
            frames: false,
            thread_locals: Some(1),
        }
    }

    /// The script. `keep` are the symbols from which everything else must be reachable, `constants`
    /// those that have a value where something refers to them.
    pub fn script(&self, keep: &[String], constants: &[(String, u32)]) -> String {
        let mut out = String::new();
        let data_header = if self.data {
            "  data PT_LOAD FLAGS(6);\n"
        } else {
            ""
        };
        let thread_header = if self.thread_locals.is_some() {
            "  thread PT_TLS FLAGS(4);\n"
        } else {
            ""
        };
        let _ = write!(
            out,
            "PHDRS {{\n  text PT_LOAD FLAGS(5);\n  constants PT_LOAD FLAGS(4);\n{data_header}  notes PT_NOTE FLAGS(4);\n\
             {thread_header}  stack PT_GNU_STACK FLAGS(6);\n}}\n"
        );
        for name in keep {
            let _ = writeln!(out, "EXTERN(\"{name}\")");
        }
        for (name, value) in constants {
            let _ = writeln!(out, "PROVIDE_HIDDEN({name} = {value:#x});");
        }
        let (text, size) = (self.text, 1u64 << self.stack_log2);
        let mask = size - 1;
        let debug: String = DEBUG_SECTIONS
            .split_whitespace()
            .map(|name| format!("  .{name} 0 : {{ *(.{name} .{name}.*) }}\n"))
            .collect();
        let (frames, no_frames) = if self.frames {
            (FRAMES, "")
        } else {
            ("", "*(.eh_frame*) *(.gcc_except_table*) ")
        };
        // The header has the largest alignment, and must begin at a multiple of it.
        let thread_locals = self.thread_locals.map_or(String::new(), |alignment| {
            format!(
                "  .tdata : ALIGN({alignment}) {{ *(.tdata .tdata.* .gnu.linkonce.td.*) }} :constants :thread
  .tbss : {{ *(.tbss .tbss.* .gnu.linkonce.tb.* .tcommon) KEEP(*(.postern.tbss)) }} :constants :thread
"
            )
        });
        // A page's rest is filled with int3, which cannot be run into by a last instruction that
        // falls through.
        let _ = write!(
            out,
            "SECTIONS {{
  . = {text:#x};
  .text : {{
    *(.text.unlikely .text.*_unlikely .text.unlikely.*)
    *(.text.startup .text.startup.*)
    *(.text.hot .text.hot.*)
    *(SORT(.text.sorted.*))
    *(.text .text.*)
    BYTE(0xcc) . = ALIGN(4096);
  }} :text =0xcccccccc
  . = ALIGN(4096);
  .note.postern : {{ KEEP(*(.note.postern)) }} :constants :notes
  .rodata : {{ *(.rodata .rodata.*) *(.data.rel.ro .data.rel.ro.*) }} :constants
{thread_locals}  .init_array : {{
    __postern_init_start = .;
    KEEP(*(SORT_BY_INIT_PRIORITY(.init_array.*) SORT_BY_INIT_PRIORITY(.ctors.*)))
    KEEP(*(.init_array .ctors))
    __postern_init_end = .;
  }} :constants
{frames}  . = ALIGN({size:#x});
  . += {size:#x};
  PROVIDE_HIDDEN({STACK_MASK} = {mask:#x});
  PROVIDE_HIDDEN({STACK_MASK_WORD} = {INFO_STACK_MASK:#x});
"
        );
        if self.data {
            out.push_str(
                "  .data : { *(.data .data.*) *(.ldata .ldata.*) } :data
  .bss (NOLOAD) : { *(.bss .bss.*) *(.lbss .lbss.*) *(COMMON) . = ALIGN(16); } :data
",
            );
        }
        let _ = write!(
            out,
            "  . = ALIGN(4096);
  __postern_heap_start = .;
{debug}  /DISCARD/ : {{ *(.comment) *(.note.GNU-stack) *(.note.gnu.*) {no_frames}*(.fini_array*) \
             *(.dtors*) *(.debug_frame) *(.gnu.warning.*) }}
}}
"
        );
        out
    }
}
