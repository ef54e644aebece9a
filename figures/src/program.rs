//! Where the programs of the benchmark are: `postern` finds the one with all groups, and that one
//! finds `postern`.

use std::path::{Path, PathBuf};

/// The program with the groups that the command has not.
pub const GROUPS: &str = "postern-bench";

/// Names the command to the program with all groups, for what it starts.
pub const COMMAND: &str = "POSTERN";

/// The program `name`: beside this one, in the folder `tree` seen from this one's, or where the
/// shell looks.
pub fn find(name: &str, tree: &str) -> Option<PathBuf> {
    let this = std::env::current_exe().ok();
    let own = this.as_deref().and_then(Path::parent);
    let near = own
        .into_iter()
        .flat_map(|folder| [folder.to_owned(), folder.join(tree)]);
    let path = std::env::var_os("PATH").unwrap_or_default();
    near.chain(std::env::split_paths(&path))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}
