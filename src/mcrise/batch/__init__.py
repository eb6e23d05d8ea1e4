"""Work on many images: collections, storage, workers, and the engine that studies and audits share.

Images come from a collection (`datasets`), here or in an object store (`storage`). A study or an
audit is a `Batch` (`engine`): it says which tasks there are and takes in their answers, while the
engine claims the folder, holds its lock, retries what failed and writes the status. A task is a
pure function of what it is given (`work`), so it makes no difference who does it: this process,
others of this machine (`workers`) or the actors of a Ray cluster (`ray_workers`). What comes out is
written as Parquet (`tables`), the same to the byte for any number of workers and after any kill.

To read in this order: work, engine, workers.
"""
