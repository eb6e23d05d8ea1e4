"""What a browser or a script can ask for: a file for each subject, where its routes are added."""

from . import audit, downloads, jobs, overview, results

ROUTERS = tuple(part.router for part in (jobs, audit, overview, results, downloads))
