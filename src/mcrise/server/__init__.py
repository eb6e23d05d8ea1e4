"""The page in the browser, and the HTTP API behind it.

One thread owns the models and works through the queue of jobs; requests read what is there. Jobs
survive a kill: their rows are in SQLite, their pictures and runs beside it.

- `app`: the FastAPI application; `security`: hosts, origins, tokens, slow connections.
- `schemas`: a job and a request for one; `parameters`: parameters that routes share.
- `routes/`: jobs, results, overview, audit and downloads.
- `job_queue`: the queue and its thread; `store`: rows and files; `quota`: how many bytes jobs take.
- `models`: models that are served; `image_decoder`: pictures decoded in a process of their own.
- `cache`: results that were computed before; `uploads`: limits of what is sent.
- `comparison`: what differs between two jobs, and whether their maps can be subtracted.
- `web/`: the page, plain JavaScript without a build step.

It listens on this machine only unless `--host` says otherwise, and every label is escaped.
"""
