"""What client and server must compute bit for bit; docs/protocol.md says it in words for other languages.

Pure functions of their arguments: no clock, socket, disk, environment or coins in here.
"""
