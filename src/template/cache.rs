//! A cache of bounded size for what is made of a text alone, and can be made again.

use std::collections::HashMap;

use crate::value::mutex::RwLock;

/// When it is full it forgets everything: cheaper than to know what was used last, and as good where few texts are used often.
pub(super) struct TextCache<V> {
    entries: RwLock<HashMap<Box<str>, V>>,
    most: usize,
}

impl<V: Clone> TextCache<V> {
    pub(super) fn with_room_for(most: usize) -> Self {
        TextCache { entries: RwLock::default(), most }
    }

    pub(super) fn recall(&self, text: &str) -> Option<V> {
        self.entries.read().get(text).cloned()
    }

    pub(super) fn keep(&self, text: &str, value: V) {
        let mut entries = self.entries.write();
        if entries.len() >= self.most {
            entries.clear();
        }
        entries.insert(text.into(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cache_makes_room() {
        let cache = TextCache::with_room_for(3);
        for number in 0..100 {
            cache.keep(&number.to_string(), number);
            assert_eq!(cache.recall(&number.to_string()), Some(number));
            assert!(cache.entries.read().len() <= 3);
        }
        assert_eq!(cache.recall("0"), None);
    }
}
