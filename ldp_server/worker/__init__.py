"""The niced child process that counts, estimates and decodes, so that the serving process never does.

frames    what goes over the two pipes
counts    warm counts: checkpoint plus tail of the log, brought up to date on demand
answers   counts to serialised responses
__main__  the child: reads the log, never writes it; ends when its parent does
client    the parent's side: start, ask, cancel, start again
"""
