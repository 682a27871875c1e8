"""The simulation over the real wire: a server process that can be killed, and senders that resend the same bytes."""
