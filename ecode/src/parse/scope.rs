//! What names mean: scopes, and suggestions for names that mean nothing.

use alloc::format;
use alloc::string::String;

use super::{Meaning, Parser, Symbol};
use crate::diagnostics::Rule;
use crate::names::{Name, distance};
use crate::types::*;

impl Parser<'_> {
    pub(crate) fn spelling(&self, name: Name) -> String {
        String::from_utf8_lossy(self.names.spelling(self.source, name)).into_owned()
    }

    pub(crate) fn spell(&self, ty: Type) -> String {
        let text = self.types.spell(self.source, &self.names, ty);
        text.trim_end().into()
    }

    pub(super) fn lookup(&self, name: Name) -> Option<&Symbol> {
        match self.names.get(name).symbol {
            0 => None,
            index => self.symbols.get(index as usize),
        }
    }

    /// Gives a name a meaning in the present scope. The caller has looked whether it has one
    /// already.
    pub(super) fn bind(&mut self, name: Name, meaning: Meaning, ty: Type, at: u32) {
        let previous = self.names.get(name).symbol;
        self.symbols.push(Symbol {
            name,
            meaning,
            ty,
            at,
            depth: self.depth,
            align: 0,
            previous,
        });
        self.names.get_mut(name).symbol = self.symbols.len() as u32 - 1;
    }

    pub(super) fn open_scope(&mut self) -> (usize, usize) {
        self.depth += 1;
        (self.symbols.len(), self.tags.len())
    }

    pub(super) fn close_scope(&mut self, (symbols, tags): (usize, usize)) {
        while self.symbols.len() > symbols {
            if let Some(symbol) = self.symbols.pop() {
                self.names.get_mut(symbol.name).symbol = symbol.previous;
            }
        }
        while self.tags.len() > tags {
            if let Some(tag) = self.tags.pop() {
                self.names.get_mut(tag.name).tag = tag.previous;
            }
        }
        self.depth -= 1;
        while self
            .variables
            .last()
            .is_some_and(|(_, depth)| *depth > self.depth)
        {
            self.variables.pop();
        }
    }

    /// For an error at `at`: a question about the known name that is spelled most like this one.
    #[cold]
    pub(super) fn nearest(
        &self,
        name: Name,
        at: u32,
        wanted: impl Fn(&Self, Name) -> bool,
    ) -> Option<String> {
        if !self.wants(at) {
            return None;
        }
        let text = self.names.spelling(self.source, name);
        if text.len() < 2 {
            return None; // it is as near to one name as to another
        }
        let mut best = (text.len().div_ceil(3).min(3) + 1, None);
        for index in 0..self.names.len().min(4096) as u32 {
            let other = Name(index);
            let long = self.names.spelling(self.source, other).len() > 1;
            if other != name && long && wanted(self, other) {
                let far = distance(text, self.names.spelling(self.source, other), best.0);
                if far < best.0 {
                    best = (far, Some(other));
                }
            }
        }
        best.1
            .map(|name| format!("is `{}` meant?", self.spelling(name)))
    }

    #[cold]
    pub(super) fn unknown_name(&mut self, name: Name, at: u32, call: bool) {
        let near = self.nearest(name, at, |parser, other| parser.lookup(other).is_some());
        let help = match near {
            Some(near) => near,
            None if call => "declare the function before it is called, as in `int f(int);`".into(),
            None => "declare it before it is used".into(),
        };
        let message = format!("`{}` is not declared", self.spelling(name));
        self.error(Rule::UnknownName, at, message, &help);
        // Once is enough for each name in a scope.
        self.bind(name, Meaning::Constant(0), ERROR, at);
    }
}
