//! Structures with pointers, built by one, followed by all, converted by nobody.
use super::*;
use postern::FaultKind;

const TREE: &str = include_str!("../../../capi/tests/extensions/tree.c");
const LIST: &str = r#"
struct item { struct item *next; long value; };

/* Pointers of the extension's own: made of an argument. */
struct item *chain(struct item *items, long count)
{
	for (long i = 0; i < count; i++) {
		items[i].value = i * i;
		items[i].next = i + 1 < count ? &items[i + 1] : 0;
	}
	return items;
}

long length(const struct item *item)
{
	long count = 0;
	for (; item; item = item->next)
		count++;
	return count;
}
"#;

fn compiled() -> Image {
    let source = [TREE, LIST].concat();
    support::compile("structures.c", &source, &["-O2", "-g"])
}

const NODE: usize = 24;

/// Keys in order, as the host finds them: each pointer is the host's as it is.
fn walk(area: &Shared, pointer: u64, keys: &mut Vec<i64>) {
    if pointer != 0 {
        let node = area.at(pointer, NODE).expect("in the area");
        assert_eq!(node as u64, pointer, "nothing to convert");
        let [left, right, key] = unsafe { node.cast::<[u64; 3]>().read_volatile() };
        walk(area, left, keys);
        keys.push(key as i64);
        walk(area, right, keys);
    }
}

#[test]
fn a_tree_and_a_list_are_followed_everywhere() {
    let image = compiled();
    let domain = |name| Domain::builder(&image).name(name).build().unwrap();
    let [writer, reader] = ["writer", "reader"].map(domain);
    let area = Shared::builder().name("tree").zeroed(8 * P).unwrap();
    let at = writer.share(&area, Prot::ReadWrite).unwrap();
    reader.share(&area, Prot::Read).unwrap();
    let (root, nodes) = (area.as_ptr() as u64, 100);
    let first = root + NODE as u64;
    for (i, pointer) in [0, first, first + nodes * NODE as u64]
        .into_iter()
        .enumerate()
    {
        area.write(8 * i, &pointer.to_ne_bytes()).unwrap();
    }
    let insert = writer.func::<fn(Offset, i64) -> i32>("insert").unwrap();
    let sum = reader.func::<fn(Offset) -> i64>("sum").unwrap();
    let mut keys: Vec<i64> = (0..nodes as i64).map(|i| i * 37 % 101).collect();
    for &key in &keys {
        assert_eq!(insert.call(at, key).unwrap(), 1);
    }
    assert_eq!(insert.call(at, 5).unwrap(), 0, "the pool is empty");
    assert_eq!(sum.call(at).unwrap(), keys.iter().sum::<i64>());
    let mut found = Vec::new();
    let mut top = [0; 8];
    area.read(0, &mut top).unwrap();
    walk(&area, u64::from_ne_bytes(top), &mut found);
    keys.sort();
    assert_eq!(found, keys);
    // The reader can do no more than read.
    let spoil = reader.func::<fn(Offset, i64) -> i32>("insert").unwrap();
    area.write(16, &(first + 2 * nodes * NODE as u64).to_ne_bytes())
        .unwrap();
    let f = fault(&reader, spoil.call(at, 1));
    assert_eq!(f.kind, FaultKind::ReadOnly);
    let text = f.to_string();
    assert!(
        text.contains("area `tree`, domain `reader`") && text.contains("insert"),
        "{text}"
    );
    assert_eq!(sum.call(at).unwrap(), keys.iter().sum::<i64>());

    // An extension's own pointers: the host asks the area for each, and gets the same place.
    let items = Offset(at.0 + 4 * PAGE);
    let chain = writer.func::<fn(Offset, i64) -> Offset>("chain").unwrap();
    let length = reader.func::<fn(Offset) -> i64>("length").unwrap();
    let head = chain.call(items, 200).unwrap();
    assert_eq!(length.call(head).unwrap(), 200);
    let (mut pointer, mut values) = (u64::from(head.0), Vec::new());
    while pointer != 0 {
        let item = area.at(pointer, 16).expect("in the area");
        let [next, value] = unsafe { item.cast::<[u64; 2]>().read_volatile() };
        values.push(value);
        pointer = next;
    }
    assert!(values.iter().copied().eq((0..200).map(|i| i * i)));
    // A pointer that leads out is found out.
    area.write(4 * P, &0x1_2345u64.to_ne_bytes()).unwrap();
    let mut wild = [0; 8];
    area.read(4 * P, &mut wild).unwrap();
    assert_eq!(area.at(u64::from_ne_bytes(wild), 16), None);
}
