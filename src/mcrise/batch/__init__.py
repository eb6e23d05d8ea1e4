"""The engine under studies and audits: many images, many workers, any interruption.

A batch says which tasks there are and what to do with an answer. The engine claims the folder,
hands tasks to workers, takes their results in any order and writes the same bytes whoever computed
them. Killed at any moment, the same command continues; what failed can be tried again.

- `storage`: paths on this machine or in an object store, and tables there (Parquet).
- `datasets`: images with labels from folders, CSV files and GTSRB.
- `tasks`: what a task, a worker and the settings of a batch are.
- `workers`: workers in this process, in several, or on a Ray cluster.
- `folder`: whose folder it is (note and lock), and how far the work is.
- `engine`: handing out tasks, retries, status, resuming.

`studies` and `audits` say which tasks there are and what to make of the results.
"""
