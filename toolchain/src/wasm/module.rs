//! What the glue must know of a WebAssembly module: types, imports, exports and sizes (WebAssembly
//! 1.0, section 5, and the reference types of 2.0).
//!
//! wasm2c has validated the module before; whatever is malformed nevertheless is an error here,
//! never a panic.

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// A reference, which no host can pass.
    Reference,
}

/// The type of a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Function {
    /// Parameters.
    pub parameters: Vec<Value>,
    /// Results.
    pub results: Vec<Value>,
}

/// Sizes of a memory (in pages of 64 KiB) or a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// At the beginning.
    pub least: u32,
    /// At most.
    pub most: Option<u32>,
}

/// Something imported or exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A function.
    Function(Function),
    /// A table of functions (or of other references).
    Table(Sizes, bool),
    /// A memory.
    Memory,
    /// A global.
    Global(Value),
}

/// An import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// First name.
    pub module: String,
    /// Second name.
    pub name: String,
    /// What it is.
    pub item: Item,
}

/// An export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// What it is.
    pub item: Item,
}

/// A module, as far as the glue needs it.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The type section.
    pub types: Vec<Function>,
    /// All imports, in order.
    pub imports: Vec<Import>,
    /// All exports, in order.
    pub exports: Vec<Export>,
    /// The memory, imported or not.
    pub memory: Option<Sizes>,
}

/// The four bytes at the beginning of a module, and version 1.
const MAGIC: &[u8] = b"\0asm\x01\0\0\0";

/// Reads a module; none where it is malformed or uses what is not known here.
pub fn read(bytes: &[u8]) -> Option<Module> {
    let mut rest = Reader {
        bytes: bytes.strip_prefix(MAGIC)?,
    };
    let mut module = Module::default();
    let (mut functions, mut tables, mut globals) = (Vec::new(), Vec::new(), Vec::new());
    while !rest.bytes.is_empty() {
        let id = rest.byte()?;
        let length = rest.u32()? as usize;
        let mut section = Reader {
            bytes: rest.take(length)?,
        };
        if !(1..=7).contains(&id) {
            continue;
        }
        for _ in 0..section.u32()? {
            match id {
                1 => module.types.push(section.function_type()?),
                2 => {
                    let (first, name) = (section.name()?, section.name()?);
                    let item = match section.byte()? {
                        0 => Item::Function(section.type_index(&module.types)?),
                        1 => section.table()?,
                        2 => {
                            module.memory = Some(section.sizes()?);
                            Item::Memory
                        }
                        3 => Item::Global(section.global()?),
                        _ => return None,
                    };
                    match &item {
                        Item::Function(function) => functions.push(function.clone()),
                        Item::Table(..) => tables.push(item.clone()),
                        Item::Memory => {}
                        Item::Global(value) => globals.push(*value),
                    }
                    module.imports.push(Import {
                        module: first,
                        name,
                        item,
                    });
                }
                3 => functions.push(section.type_index(&module.types)?),
                4 => tables.push(section.table()?),
                5 => module.memory = Some(section.sizes()?),
                6 => {
                    globals.push(section.global()?);
                    section.constant()?;
                }
                _ => {
                    let name = section.name()?;
                    let kind = section.byte()?;
                    let index = section.u32()? as usize;
                    let item = match kind {
                        0 => Item::Function(functions.get(index)?.clone()),
                        1 => tables.get(index)?.clone(),
                        2 => Item::Memory,
                        3 => Item::Global(*globals.get(index)?),
                        _ => return None,
                    };
                    module.exports.push(Export { name, item });
                }
            }
        }
    }
    Some(module)
}

struct Reader<'b> {
    bytes: &'b [u8],
}

impl<'b> Reader<'b> {
    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Leaves out a LEB128 number of either kind.
    fn number(&mut self) -> Option<()> {
        while self.byte()? & 0x80 != 0 {}
        Some(())
    }

    fn u32(&mut self) -> Option<u32> {
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).ok();
            }
        }
        None
    }

    fn name(&mut self) -> Option<String> {
        let length = self.u32()? as usize;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    fn value(&mut self) -> Option<Value> {
        match self.byte()? {
            0x7f => Some(Value::I32),
            0x7e => Some(Value::I64),
            0x7d => Some(Value::F32),
            0x7c => Some(Value::F64),
            0x70 | 0x6f => Some(Value::Reference),
            _ => None,
        }
    }

    fn values(&mut self) -> Option<Vec<Value>> {
        (0..self.u32()?).map(|_| self.value()).collect()
    }

    fn function_type(&mut self) -> Option<Function> {
        if self.byte()? != 0x60 {
            return None;
        }
        Some(Function {
            parameters: self.values()?,
            results: self.values()?,
        })
    }

    fn type_index(&mut self, types: &[Function]) -> Option<Function> {
        types.get(self.u32()? as usize).cloned()
    }

    fn sizes(&mut self) -> Option<Sizes> {
        let most = match self.byte()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(Sizes {
            least: self.u32()?,
            most: if most { Some(self.u32()?) } else { None },
        })
    }

    fn table(&mut self) -> Option<Item> {
        let functions = self.byte()? == 0x70;
        Some(Item::Table(self.sizes()?, functions))
    }

    fn global(&mut self) -> Option<Value> {
        let value = self.value()?;
        self.byte()?;
        Some(value)
    }

    /// Leaves out a constant expression.
    fn constant(&mut self) -> Option<()> {
        loop {
            match self.byte()? {
                0x0b => return Some(()),
                // Constants, the value of a global, a null reference's type, a function's
                // reference.
                0x41 | 0x42 | 0x23 | 0xd0 | 0xd2 => self.number()?,
                0x43 => drop(self.take(4)?),
                0x44 => drop(self.take(8)?),
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_module_and_its_beginnings() {
        // (import "e" "f" (func (param i32) (result i64))) (memory 1 3) (global i32 (i32.const
        // 700)) and four exports
        let bytes = b"\0asm\x01\0\0\0\x01\x06\x01\x60\x01\x7f\x01\x7e\x02\x07\x01\x01e\x01f\0\0\x05\x04\x01\x01\x01\x03\
            \x06\x07\x01\x7f\0\x41\xbc\x05\x0b\x07\x0d\x03\x01f\0\0\x01m\x02\0\x01g\x03\0";
        let module = read(bytes).unwrap();
        let function = Item::Function(Function {
            parameters: vec![Value::I32],
            results: vec![Value::I64],
        });
        assert_eq!(module.imports[0].item, function);
        assert_eq!(module.exports[0].item, function);
        assert_eq!(module.exports[2].item, Item::Global(Value::I32));
        let sizes = module.memory.unwrap();
        assert_eq!((sizes.least, sizes.most), (1, Some(3)));
        for length in 0..bytes.len() {
            let _ = read(&bytes[..length]);
        }
    }
}
