//! What has been compiled, one file each. A file holds its whole key, so that
//! two keys with one hash do no harm, and appears under its name only when it is
//! complete. Whatever is wrong with the folder costs time, and nothing else.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, process};

pub(super) struct DiskCache {
    folder: PathBuf,
}

impl DiskCache {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// What was put under the key.
    pub(super) fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut file = fs::read(self.path(key)).ok()?;
        let head = [&(key.len() as u64).to_le_bytes(), key].concat();
        if !file.starts_with(&head) {
            return None;
        }
        Some(file.split_off(head.len()))
    }

    /// Keeps code, if that can be done.
    pub(super) fn put(&self, key: &[u8], code: &[u8]) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.folder.join(format!("{}-{number}.tmp", process::id()));
        let file = [&(key.len() as u64).to_le_bytes(), key, code].concat();
        let written = fs::create_dir_all(&self.folder)
            .and_then(|()| fs::write(&unfinished, file))
            .and_then(|()| fs::rename(&unfinished, self.path(key)));
        if written.is_err() {
            // There may be nothing to remove; it is compiled again next time.
            drop(fs::remove_file(&unfinished));
        }
    }

    fn path(&self, key: &[u8]) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        self.folder.join(format!("{:016x}.code", hasher.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of this test, removed when it ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("celerity-{name}-{}", process::id())))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    #[test]
    fn what_was_put_is_found_by_its_whole_key() {
        let folder = Folder::new("cache");
        let cache = DiskCache::new(folder.0.join("not yet there"));
        assert_eq!(cache.get(b"key"), None);
        cache.put(b"key", b"code");
        cache.put(b"key", b"newer");
        assert_eq!(cache.get(b"key").as_deref(), Some(&b"newer"[..]));
        // As if another key had the same hash.
        fs::rename(cache.path(b"key"), cache.path(b"other")).unwrap();
        assert_eq!(cache.get(b"other"), None);
        let left = fs::read_dir(folder.0.join("not yet there")).unwrap();
        assert_eq!(left.count(), 1, "nothing unfinished is left");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_no_error() {
        let folder = Folder::new("file");
        fs::write(&folder.0, "in the way").unwrap();
        let cache = DiskCache::new(folder.0.join("below"));
        cache.put(b"key", b"code");
        assert_eq!(cache.get(b"key"), None);
        fs::remove_file(&folder.0).unwrap();
    }
}
