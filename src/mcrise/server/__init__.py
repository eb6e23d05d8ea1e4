"""The page in the browser: jobs, the HTTP interface, and what the browser is sent."""
