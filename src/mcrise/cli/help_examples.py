"""One command line for each command; `--help` ends with it, and the tests run it.

Each runs in a folder where the ones above it have been run, with rules and a second audit.
"""

EXAMPLES = {
    "demo": "mcrise demo",
    "inspect": "mcrise inspect mcrise-demo/model.onnx --labels mcrise-demo/labels.txt",
    "explain": "mcrise explain mcrise-demo/signs/stop.png --model demo --n-masks 256",
    "show": "mcrise show mcrise-demo/signs/stop.png.mcrise --target yield",
    "compare": "mcrise compare mcrise-demo/washed-out-priority-road --truth 'priority road' "
    "--model demo",
    "whatif": "mcrise whatif mcrise-demo/stop --region A --paint green --model demo",
    "match": "mcrise match mcrise-demo/signs/stop.png mcrise-demo/signs --model demo --n-masks 256",
    "measure": "mcrise measure mcrise-demo/stop --model demo",
    "report": "mcrise report mcrise-demo/stop mcrise-demo/no-entry -o report.html",
    "serve": "mcrise serve --model demo",
    "audit": "mcrise audit mcrise-demo/signs --model demo --n-masks 256 --out audit",
    "diff": "mcrise diff audit audit-next",
    "check": "mcrise check audit --rules rules.toml",
    "study": "mcrise study mcrise-demo/signs --model demo --methods rise,mcrise --n-masks 256 "
    "--out study",
    "status": "mcrise status audit",
}
