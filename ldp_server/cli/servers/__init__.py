"""Commands that run a server until they are told to stop. None of these modules imports another kind of server.

collection_server    serve | collect | answer | upkeep; config, watch, demo
relay                relay serve | check | status | config; needs no numpy
pages                web; pages_beside: the process that `serve --web` starts
process              what all these processes do before, while and after they serve; the result of checks
"""
