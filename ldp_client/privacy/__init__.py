"""Privacy as numbers: what reports cost, alone and together. Plain maths, no clock, socket, disk or coins."""
